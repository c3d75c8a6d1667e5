# SPDX-License-Identifier: Apache-2.0
"""What a restore of the database needs before and behind it, so that the operator can see that it went back."""
import contextlib

from harness import Timeout, wait_until

from . import plan
from .world import Thing

AHEAD = 300  # versions


def get_ahead(chaos):
    """Before a restore: every watch has seen a version that the restored database does not have again soon. One that has
    grown past that before anybody asks cannot be told from one that never went back (docs/watch.md)."""
    def seen():
        return not chaos.is_up() or all(chaos.notes.read().of(body["metadata"]["uid"]).begun for body in bodies)

    if not chaos.is_up() or chaos._removed or chaos._resume or not chaos.server.may_restore:
        return False
    other = chaos.server.api.resource("v1", "configmaps", "plain")
    other.create(f"ahead-{chaos.next_number()}")
    for number in range(AHEAD):
        other.merge_patch(f"ahead-{chaos._number}", {"data": {"number": str(number)}})
    bodies = []
    for kind in plan.KINDS:
        number = chaos.next_number()
        while any(number % divisor == 0 for divisor in (7, 11, 13, 17, 101)):
            number = chaos.next_number()
        name = f"ahead-{number}"
        bodies.append(chaos.widgets[kind].create(name, spec={"essence": number}, labels={"tier": "gold"}))
        chaos.things[kind, name] = Thing(kind, name, bodies[-1]["metadata"]["uid"], number, chosen_since=number)
    with contextlib.suppress(Timeout):
        wait_until(seen, "each watch to get ahead", 10)
        return chaos.is_up()
    return False


def wait_asked(chaos):
    """Who has seen the connection break asks how far the server is, as soon as it may."""
    def asked():
        return not chaos.is_up() or chaos.server.asked() >= set(plan.KINDS)

    with contextlib.suppress(Timeout):
        wait_until(asked, "its questions", 10)
