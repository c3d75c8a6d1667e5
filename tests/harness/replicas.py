# SPDX-License-Identifier: Apache-2.0
"""Several replicas of one operator on one server, and handlers that find out if two of their runs overlap."""
from . import wait_until, watch
from .wait import SLOWNESS

DURATION = 5 * SLOWNESS  # the shortest that there is; on a loaded machine a leader must not lose its lead for the load
LONG = 4 * DURATION  # what happens in half of that is no expiry
AT_ONCE = LONG / 2
TAKEN = LONG + DURATION + 20 * SLOWNESS  # the first lead after a new record, or a takeover after a death, with the starts of processes


class Replicas:
    """operators, each with a handler of its own. A handler holds a lock on its object for as long as anything of it lives: one that
    finds it locked writes to `overlaps`."""

    def __init__(self, devserver, make_operator, make_handler, sandbox, widgets, namespace="default"):
        self.server, self.widgets, self.namespace = devserver, widgets, namespace
        self.make_operator, self.make_handler = make_operator, make_handler
        self.folder = sandbox.subfolder("locks", mode=0o755)
        self.overlaps = self.folder / "overlaps"
        for name in ("overlaps", "a.lock", "b.lock", *(f"w{number}.lock" for number in range(5))):
            (self.folder / name).touch()  # each replica is another user
            (self.folder / name).chmod(0o666)
        self.operators, self.handlers = [], []

    def add(self, count=1, duration=DURATION, behaviour="", grace="30s", compatible=False, **options):
        for _ in range(count):
            operator, handler = self.make_operator(), self.make_handler()
            handler.behave(self.locks + behaviour)
            operator.configure(self.server, [watch("widgets", handler, **options)], stop={"grace": grace},
                               replicas={"namespace": self.namespace, "duration": f"{duration * 1000:.0f}ms",
                                         "compatible": compatible})
            self.operators.append(operator)
            self.handlers.append(handler)
            operator.start_ready()
        return self

    @property
    def locks(self):
        return (f"exec 9<{self.folder}/$RECONCILED_NAME.lock || exit 1\n"
                f"flock -n 9 || echo $RECONCILED_NAME >>{self.overlaps}\n")

    def replica(self, operator):
        return operator.ctl.status()["replica"]

    def leads(self, operator):
        return operator.popen is not None and self.replica(operator)["state"] == "leading"

    def leader(self, deadline=TAKEN, among=None):
        """(the one that leads, those that do not); of those that can answer"""
        def find():
            found = [operator for operator in among or self.operators if self.leads(operator)]
            assert len(found) < 2, "two lead"
            return found[0] if found else None

        leader = wait_until(find, "a leader", deadline / SLOWNESS)
        return leader, [operator for operator in self.operators if operator is not leader]

    def handler_of(self, operator):
        return self.handlers[self.operators.index(operator)]

    def assert_no_overlap(self):
        assert self.overlaps.read_text() == ""
        assert all(request.exit_code in (0, None) for handler in self.handlers for request in handler.requests()), "a lock was missing"

    def lease(self, name="widgets.example.com"):
        return self.server.api.resource("coordination.k8s.io/v1", "leases", self.namespace).get(name)

    def writes(self, since=0):
        """Writes to widgets that the server has carried out."""
        return self.server.requests(lambda request: request.get("resource") == "widgets" and request.get("wrote") and
                                    request.get("verb") == "patch")[since:]
