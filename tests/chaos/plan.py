# SPDX-License-Identifier: Apache-2.0
"""What happens, in which order: a pure function of the seed. How fast the processes are is not."""
import random
from dataclasses import dataclass, field

NAMES = 25  # of each kind of object
KINDS = ("held", "plain", "chosen", "quiet")

# What needs the API server.
OBJECT = {"create", "update", "status", "delete", "hold", "release", "relabel", "child", "revert", "reuse", "relabel under way",
          "drop finalizer"}

# How often a step is what, in a thousand.
_WEIGHTS = {
    "create": 330, "update": 230, "status": 80, "delete": 150, "hold": 40, "release": 50, "relabel": 50, "child": 15,
    "revert": 12, "reuse": 12, "relabel under way": 6, "drop finalizer": 10, "switch finalizer": 1, "remove watch": 1,
    "kill": 5, "kill supervisor": 2, "suspend": 2, "kill handler": 4, "stop": 1, "reload": 1, "pause": 2,
    "lose store": 1,
}
# What objects of any number need beside the steps that somebody has chosen.
_ALWAYS = ("create", "update", "delete")
# ... by what happens to which server.
SERVERS = {
    "devserver": {"fault": 6, "watches": 2, "compact": 1, "outage": 1,
                  "snapshot": 2, "restore": 1},
    "cluster": {"restart": 1, "compact": 3, "etcd": 1, "outage": 1},
}

# What happens while a handler sees the content that is taken back behind it.
_BETWEEN = ("nothing", "nothing", "conflict", "conflict", "kill handler", "kill", "kill supervisor", "stop")

_SIGNALS = ("KILL", "KILL", "KILL", "TERM", "ABRT", "SEGV", "BUS", "STOP")
_ROLES = ("credential", "watcher", "watcher", "worker", "worker", "spawner", "gateway")

_WATCH, _LIST, _PATCH = {"verb": "watch"}, {"verb": "list"}, {"verb": "patch"}
_FAULTS = (
    {"match": _PATCH, "status": 500, "times": 3},
    {"match": _PATCH, "status": 503, "retryAfter": 1},
    {"match": _PATCH, "status": 429, "retryAfter": 1},
    {"match": _PATCH, "status": 409, "times": 3},
    {"match": _PATCH, "status": 422},
    {"match": _PATCH, "reset": True, "times": 2},
    {"match": {"verb": "create", "resource": "events"}, "status": 403, "times": 2},
    {"match": {"verb": "get"}, "status": 500, "times": 2},
    {"match": _WATCH, "status": 410},
    {"match": _WATCH, "status": 500, "times": 2},
    {"match": _WATCH, "status": 429, "retryAfter": 1},
    {"match": _WATCH, "atEvent": 3, "error": {"code": 410, "reason": "Expired"}},
    {"match": _WATCH, "atEvent": 2, "error": {"code": 500, "reason": "InternalError"}},
    {"match": _WATCH, "atByte": 700, "close": "cut"},
    {"match": _WATCH, "atEvent": 5, "stall": True},
    {"match": _WATCH, "pieces": 7, "times": 2},
    {"match": _LIST, "status": 500},
    {"match": _LIST, "status": 504, "times": 2},
    {"match": {"verb": "list", "continue": True}, "status": 410},
    {"match": _LIST, "atByte": 300, "close": "cut"},
    {"match": _LIST, "reset": True},
    {"match": {"verb": "discovery"}, "status": 503},
)


@dataclass(frozen=True)
class Step:
    what: str
    kind: str  # of object
    name: str
    values: dict = field(default_factory=dict)


def steps(seed, server="devserver", only=()):
    """Without end. Every step takes the same from the generator, whatever it is. only: of which kinds, if not of all."""
    generator = random.Random(seed)
    weight = _WEIGHTS | SERVERS[server]
    assert set(only) <= set(weight), f"there are {', '.join(weight)}"
    if only:
        weight = {what: 10 if what in only else weight[what] // 10 for what in weight if what in only or what in _ALWAYS}
    names, weights = list(weight), list(weight.values())
    while True:
        what = generator.choices(names, weights)[0]
        yield Step(what, generator.choice(KINDS), f"o{generator.randrange(NAMES)}", {
            "chance": generator.random(), "role": generator.choice(_ROLES), "signal": generator.choice(_SIGNALS),
            "fault": generator.choice(_FAULTS), "seconds": generator.uniform(0.2, 1.5), "cut": generator.random() < 0.5,
            "between": generator.choice(_BETWEEN),
        })
