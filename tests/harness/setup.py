# SPDX-License-Identifier: Apache-2.0
"""Where the programs under test are, and the pieces of configuration that most tests share."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import socket
import stat

from .wait import SLOWNESS

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RECONCILED_BUILD", SOURCE / "build"))
# What outlives a build folder, as for tools/kube-assets.
CACHE = pathlib.Path(os.environ.get("RECONCILED_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "reconciled")
# To compile Go's own library takes half a minute of processor time. Go throws away what it has not used for five days.
GO_CACHE = CACHE / "go-build"
SANITIZED = os.environ.get("RECONCILED_SANITIZED") in ("1", "all")

# Where each program stands in the build folder; children are looked for beside the supervisor's folder.
PROGRAMS = {
    "reconciled": "supervisor",
    "reconciled-credential": "credential",
    "reconciled-watcher": "watcher",
    "reconciled-worker": "worker",
    "reconciled-plugin-host": "plugin",
    "reconciled-gateway": "gateway",
    "reconciled-lease": "lease",
    "reconciled-jq": "jq",
    "reconciled-spawner": "spawner",
    "reconciled-become": "become",
    "reconciledctl": "ctl",
    "reconciled-devserver": "devserver",
}


def small_program(name):
    """One of tests/harness/meson.build: which are started ten thousand times, if possible as they start fastest."""
    quick = BUILD / f"tests/harness/{name}-musl"
    return quick if quick.exists() else BUILD / f"tests/harness/{name}"


# For `openssl req`. To make a key of RSA takes a third of a second of processor time.
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def free_ports(count=1):
    """Ports to listen on. None of those that the kernel gives to whoever connects: it could be taken before it is used."""
    found = set()
    while len(found) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))
            found.add(port)
    return list(found)


WIDGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                  "shortNames": ["wd"]},
        "versions": [{
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }},
        }],
    },
}


def stage(folder):
    """Copies the built programs into `folder`, laid out as in the build folder, readable for every user: a clone
    under /root is not. Programs that are not built are left out. Returns {name: path}."""
    programs = {}
    for name, part in PROGRAMS.items():
        built = BUILD / part / name
        if not built.exists():
            continue
        target = pathlib.Path(folder) / part / name
        target.parent.mkdir(mode=0o755, exist_ok=True)
        shutil.copy(built, target)
        target.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH
                     | stat.S_IXOTH)
        programs[name] = target
    return programs


# What handlers of tests may answer as children: kinds that each server has. A test that is about the bound names its own.
CHILD_KINDS = ["v1 ConfigMap", "v1 Secret", "v1 Service", "v1 ServiceAccount", "v1 Pod", "v1 Namespace", "v1 Node",
               "v1 PersistentVolumeClaim", "apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job",
               "rbac.authorization.k8s.io/v1 ClusterRole", "apiextensions.k8s.io/v1 CustomResourceDefinition"]


def child_kinds(*kinds):
    """["apps/v1 Deployment"] as `children.kinds` has it."""
    return [dict(zip(("apiVersion", "kind"), kind.split())) for kind in kinds]


NO_CHILDREN = {"kinds": []}


def allowing(*kinds, **children):
    """`children` with these kinds besides CHILD_KINDS."""
    return {"kinds": child_kinds(*CHILD_KINDS, *kinds), "namespaces": ["*"], **children}


def watch(name, handler=None, api_version="example.com/v1", kind="Widget", **more):
    """An entry for `watches:`, with delays small enough for tests. `handler` is a Handler or a command list; other
    keys as the configuration spells them; handler options go into handler_options={"timeout": "1s"}. Its children may be of
    CHILD_KINDS, in each namespace, unless `children` names `kinds` itself."""
    options = dict(more.pop("handler_options", {}))
    entry = {"name": name, "apiVersion": api_version, "kind": kind, "retry": {"first": "50ms", "max": "1s"},
             "reconnect": {"first": "50ms", "max": "1s"}}
    if handler is not None:
        entry["handler"] = {"exec": list(getattr(handler, "command", handler)), **options}
    entry.update(more)
    children = entry.get("children", {})
    if "kinds" not in children:
        entry["children"] = allowing(**children)
    return entry


_UNIT = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def _stretched_duration(text):
    found = re.fullmatch(r"(\d+)(ms|s|m|h)", text) if isinstance(text, str) else None
    if SLOWNESS == 1 or not found:
        return text
    seconds = int(found[1]) * _UNIT[found[2]]
    # A minute is generous on any machine.
    return text if seconds >= 60 else f"{min(seconds * SLOWNESS, 60) * 1000:.0f}ms"


def _stretched_keys(entry, *keys):
    """A copy, with these of its keys stretched where it has them."""
    return {key: _stretched_duration(value) if key in keys else value for key, value in entry.items()}


def stretched(config):
    """The same configuration with upper bounds that follow the load, as scaled() does: heartbeat.deadline, stop.grace, and
    `deadline`, `timeout` and `grace` of a watch. Delays (retry, requeueAfter, resync) stay: they are nobody's patience. A test that
    wants the very numbers is marked `quiet`. The argument is not changed."""
    config = dict(config)
    for section, key in (("heartbeat", "deadline"), ("stop", "grace")):
        if isinstance(config.get(section), dict):
            config[section] = _stretched_keys(config[section], key)
    watches = []
    for entry in config.get("watches") or []:
        entry = _stretched_keys(entry, "deadline")
        if isinstance(entry.get("handler"), dict):
            entry["handler"] = _stretched_keys(entry["handler"], "timeout", "grace")
        watches.append(entry)
    if "watches" in config:
        config["watches"] = watches
    return config
