# SPDX-License-Identifier: Apache-2.0
"""For tests of handlers: docs/kits.md.

    from reconciled.testing import run

    def test_a_negative_size():
        assert run(widget, {"spec": {"size": -1}})["permanent"]
"""
from . import _functions, answer


def run(function, thing, action="reconcile", watch="test", **more):
    """The answer that the operator would get, failures included: what is no JSON fails here as it does there.

    function    the handler's, or None: that which the decorators have put down for this action and watch
    thing       the object; kind, name and the like are filled in
    more        other keys of the request: children, related, attempt, lastError, reason
    """
    metadata = {"name": "test", "namespace": "default", "uid": "00000000-0000-4000-8000-000000000000", **thing.get("metadata", {})}
    request = {"version": 1, "action": action, "reason": "added", "attempt": 1, "lastError": "", "watch": watch,
               "object": {"apiVersion": "example.com/v1", "kind": "Test", **thing, "metadata": metadata}, **more}
    return answer(request, _functions if function is None else {(action, None): function})
