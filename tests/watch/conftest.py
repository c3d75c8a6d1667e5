# SPDX-License-Identifier: Apache-2.0
"""What the rows of docs/watch.md are provoked with: a devserver and its faults, an operator with one watch."""
import urllib.parse

import pytest

from harness import WIDGET_CRD, wait_until, watch

# A server that does not know initial events: the first sync is a LIST.
NO_WATCH_LIST = ["--watch-list", "off", "--version-minor", "26"]
LIST = {"verb": "list", "resource": "widgets"}
WATCH = {"verb": "watch", "resource": "widgets"}
# A backoff that no test outlives: what happens all the same happens at once.
NEVER = {"first": "30m", "max": "1h"}


def query(request):
    return dict(urllib.parse.parse_qsl(request["query"], keep_blank_values=True))


class Follower:
    """A devserver, an operator that watches its widgets, and what went over the wire between them."""

    def __init__(self, devserver, operator, handler):
        self.devserver, self.operator, self.handler = devserver, operator, handler

    @property
    def widgets(self):
        # Asked for each time: a server that gets another certificate gets another Api.
        return self.devserver.api.resource("example.com/v1", "widgets", "default")

    def configure(self, **more):
        more.setdefault("deadline", "5m")
        self.operator.configure(self.devserver, [watch("widgets", self.handler, **more)])
        return self

    def start(self, **more):
        """Configured and started; returns at once."""
        self.configure(**more).operator.start()
        return self

    def start_synced(self, **more):
        """... when the watch is in sync and its connection stands."""
        self.configure(**more).operator.start_ready().wait_synced()
        self.wait_watches(1)
        return self

    # What was asked

    def requests(self, verb, resource="widgets"):
        return self.devserver.requests(lambda request: request.get("verb") == verb and request.get("resource") == resource)

    def lists(self):
        """LISTs of widgets; a question about the newest version (limit=1) is none."""
        return [request for request in self.requests("list") if query(request).get("limit") != "1"]

    def watches(self):
        return self.requests("watch")

    def wait_lists(self, count, deadline=30):
        return wait_until(lambda: len(self.lists()) >= count and self.lists(),
                          lambda: f"{count} LISTs; there were {self.lists()}; {self.operator.output.text()}", deadline)

    def wait_watches(self, count, deadline=30):
        return wait_until(lambda: len(self.watches()) >= count and self.watches(),
                          lambda: f"{count} watches; there were {self.watches()}; {self.operator.output.text()}", deadline)

    # What came of it

    def status(self):
        return self.operator.ctl.status()["watches"][0]

    def wait_state(self, state, deadline=30):
        return wait_until(lambda: self.status()["state"] == state and self.status(),
                          lambda: f"the state {state}; it is {self.status()}", deadline)

    def create(self, name, **more):
        return self.widgets.create(name, **more)

    def ran(self, name, action="reconcile", deadline=30):
        """Waits for a finished run."""
        return self.handler.wait_finished(name=name, action=action, deadline=deadline)

    def works(self, name="proof"):
        """An object that is created now reaches the handler."""
        self.create(name)
        return self.ran(name)

    def actions(self):
        return [(request.body["action"], request.name) for request in self.handler.requests()]

    def stop(self):
        self.operator.stop()


@pytest.fixture
def follow(sandbox, make_devserver, make_operator, make_handler):
    """follow(arguments=[...]): a Follower, not started, of a server with these arguments."""
    def follow(arguments=(), load=(WIDGET_CRD,), behaviour="exit 0", operator=None):
        return Follower(make_devserver(load=load, arguments=list(arguments)), operator or make_operator(),
                        make_handler(behaviour))

    return follow


@pytest.fixture
def listing(follow):
    """A Follower of a server without initial events."""
    return follow(NO_WATCH_LIST)


@pytest.fixture
def streaming(follow):
    """A Follower of a server with them."""
    return follow()
