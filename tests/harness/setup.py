# SPDX-License-Identifier: Apache-2.0
"""Where the programs under test are, and the pieces of configuration that most tests share."""
import os
import pathlib
import shutil
import stat

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RECONCILED_BUILD", SOURCE / "build"))
SANITIZED = os.environ.get("RECONCILED_SANITIZED") == "1"

# Where each program stands in the build folder; children are looked for beside the supervisor's folder.
PROGRAMS = {
    "reconciled": "supervisor",
    "reconciled-credential": "credential",
    "reconciled-watcher": "watcher",
    "reconciled-worker": "worker",
    "reconciled-plugin-host": "plugin",
    "reconciled-gateway": "gateway",
    "reconciled-jq": "jq",
    "reconciled-spawner": "spawner",
    "reconciledctl": "ctl",
    "reconciled-devserver": "devserver",
}

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


def watch(name, handler=None, api_version="example.com/v1", kind="Widget", **more):
    """An entry for `watches:`, with delays small enough for tests. `handler` is a Handler or a command list; other
    keys as the configuration spells them; handler options go into handler_options={"timeout": "1s"}."""
    options = dict(more.pop("handler_options", {}))
    entry = {"name": name, "apiVersion": api_version, "kind": kind, "retry": {"first": "50ms", "max": "1s"},
             "reconnect": {"first": "50ms", "max": "1s"}}
    if handler is not None:
        entry["handler"] = {"exec": list(getattr(handler, "command", handler)), **options}
    entry.update(more)
    return entry
