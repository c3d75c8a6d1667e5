# SPDX-License-Identifier: Apache-2.0
"""reconciled.yaml(5) and the program agree: each key is in the manual, with the type and the default that the program has, and
each example is a configuration without mistakes. man/reconciled.yaml.5 repeats for people what lib/config/table.c says."""
import re
import shutil
import subprocess

import pytest
import yaml

from harness.documents import examples, keys_of_manual
from harness.process import clean_environment
from harness.schema import configuration
from harness.setup import BUILD, SOURCE

KEYS = keys_of_manual()
SYNOPSIS = "man/reconciled.yaml.5: # yaml-language-server: $schema=/usr/share/reconciled/schema/configura"
# The reader refuses `names` there, and says why: owned objects are found by their owner references.
NOT_A_KEY = {"watches[].owns[].names"}
# Required in one of the files, so the schema of one file does not demand them.
REQUIRED = {"operator", "watches[]"}
# What excludes other keys of the synopsis, or equals one of them in another kind of handler.
NOT_IN_SYNOPSIS = {"watches[].handler.plugin", "watches[].handler.kubernetes.kubeconfig", "watches[].handler.batch.max",
                   "watches[].handler.batch.wait"}


def schema_keys(schema, path=""):
    """{path: (its schema, whether it is required)} of all keys; watches[].owns[] is a list of mappings."""
    found = {}
    for name, entry in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        nested = entry.get("items", entry.get("oneOf", [None, entry])[1])
        inner += "[]" if "properties" in entry.get("items", {}) else ""
        found[inner] = entry, name in schema.get("required", ())
        found.update(schema_keys(nested, inner))
    return found


SCHEMA = schema_keys(configuration().schema)
# Of schedules and `startup`: described once, for watches.
SHARED = {path for path in SCHEMA if path.startswith(("schedules[].", "startup.")) and f"watches[].{path.partition('.')[2]}" in SCHEMA}
LEAVES = {path for path in SCHEMA if not any(other.startswith(path + ".") for other in SCHEMA) or "oneOf" in SCHEMA[path][0]}


def path_of(name):
    """Keys of a watch are named without their prefix; a mapping is described by its keys."""
    of_watch = f"watches[].{name}"
    return name if name in SCHEMA and not (name not in LEAVES and of_watch in LEAVES) else of_watch


def type_of(entry):
    kind = entry.get("type")
    if "enum" in entry:
        return " | ".join(entry["enum"])
    if "oneOf" in entry:
        return " | ".join([*entry["oneOf"][0]["enum"], "{jq: PROGRAM}"])
    if "$comment" in entry:
        return "duration, " + entry["$comment"]
    if kind == "integer":
        return f"number, {entry['minimum']} to {entry['maximum']}"
    if kind == "array":
        return "list" if "properties" in entry["items"] else "list of texts"
    if kind == "object":
        return "map" if isinstance(entry["additionalProperties"], dict) else "mapping"
    if "pattern" in entry:
        return f"number, {entry['minimum']:g} to {entry['maximum']:g}" if "number" in kind else "size"
    return "boolean" if kind == "boolean" else "text"


def default_of(path):
    """What the manual must say, or None where the schema leaves it to the reader."""
    entry, required = SCHEMA[path]
    if required or path in REQUIRED:
        return "required"
    value = entry.get("default")
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def test_each_key_is_in_the_manual_once():
    named = [path_of(name) for key in KEYS for name in key.names]
    assert sorted(named) == sorted(set(named))
    assert not set(named) - set(SCHEMA), "the manual describes keys that the program does not know"
    assert not LEAVES - set(named) - NOT_A_KEY - SHARED, "the manual lacks keys"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.names[0])
def test_type_and_default_are_those_of_the_program(key):
    for path in map(path_of, key.names):
        where = f"man/reconciled.yaml.5:{key.line}: {path}"
        assert key.type == type_of(SCHEMA[path][0]), where
        expected = default_of(path)
        assert key.default == expected if expected else key.default != "required", where


# --- examples


def merged(base, more):
    """`more` in the place of `base`, key by key."""
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    return {**base, **{name: merged(base.get(name), value) for name, value in more.items()}}


def holds(config, path):
    """Whether the key is there, in one of the entries where lists are on the way."""
    name, _, rest = path.partition(".")
    inner = config.get(name.removesuffix("[]")) if isinstance(config, dict) else None
    if name.endswith("[]"):
        return any(holds(entry, rest) for entry in inner or ()) if rest else isinstance(inner, list)
    return holds(inner, rest) if rest else isinstance(config, dict) and name in config


@pytest.fixture
def check(sandbox, devserver):
    """check(configuration): what `reconciledctl check` prints for it, with the files that it names where they can be."""
    folder = sandbox.subfolder("manual")

    def place(match):
        there = folder / match.group().lstrip("/")
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            if there.suffix == ".crt":
                subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout",
                                there.with_suffix(".key"), "-out", there], check=True, capture_output=True)
            elif there.name == "kubeconfig":
                text = devserver.kubeconfig.read_text(encoding="utf-8")
                # A handler's access is another one than the operator's.
                there.write_text(text if "reconciled" in there.parts else text.replace("127.0.0.1", "localhost"), encoding="utf-8")
            else:
                there.write_text("#!/bin/sh\n", encoding="utf-8")
                there.chmod(0o755)
        return str(there)

    def check(text):
        text = re.sub(r"(?<![\w.])/(?:usr/libexec|etc/(?:reconciled|widgets))/[\w./-]+", place, text)
        text = re.sub(r"\buser: widgets\b", "user: nobody", text)
        text = re.sub(r"\bcontext: production\b", f"context: {yaml.safe_load(devserver.kubeconfig.read_text())['current-context']}", text)
        file = folder / "reconciled.yaml"
        file.write_text(text, encoding="utf-8")
        environment = clean_environment(sandbox.user(), {"KUBECONFIG": str(devserver.kubeconfig), "REGION": "north", "HOME": str(folder)})
        done = subprocess.run([BUILD / "ctl" / "reconciledctl", "check", file], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0 and "no mistakes found" in done.stdout, done.stdout + done.stderr
        return done.stdout

    return check


LEAST = {"operator": "widgets.example.com", "watches": [
    {"name": "widgets", "apiVersion": "example.com/v1", "kind": "Widget", "handler": {"exec": ["/usr/libexec/widgets/handler"]}}]}


@pytest.mark.parametrize("key", [key for key in KEYS if key.names != ("watches[]",)], ids=lambda key: key.names[0])
@pytest.mark.slow
def test_each_key_has_an_example_without_mistakes(key, check):
    assert key.example, f"man/reconciled.yaml.5:{key.line}: no example"
    example = yaml.safe_load(key.example)
    base = yaml.safe_load(yaml.safe_dump(LEAST))
    if {"serve", "plugin"} & set(example.get("handler", ())):
        base["watches"][0].pop("handler")
    for path in map(path_of, key.names):
        assert holds(example, path.removeprefix("watches[].")), f"{key.example} does not show {path}"
    of_watch = path_of(key.names[0]).startswith("watches[].")
    check(yaml.safe_dump({**base, "watches": [merged(base["watches"][0], example)]} if of_watch else merged(base, example)))


def test_the_synopsis_is_complete_and_without_mistakes(check):
    text = examples()[SYNOPSIS].text
    config = yaml.safe_load(text)
    configuration().validate(config)
    missing = {path for path in LEAVES - NOT_A_KEY - NOT_IN_SYNOPSIS - SHARED if not holds(config, path)}
    assert not missing, "the synopsis lacks keys"
    for path in NOT_IN_SYNOPSIS:
        assert not holds(config, path), path
    check(text)


PAGES = sorted((SOURCE / "man").glob("*.[0-9]"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_all_pages_are_written_with_the_same_macros(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith(".Dd ") and not re.search(r"^\.(?:SH|SS|TH|TP|PP|IP|B[IR]?|I[BR]?|EX|nf)\b", text, re.M), "mdoc(7)"


@pytest.mark.only_where(shutil.which("groff"), "groff")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_are_formatted_without_a_warning(page):
    done = subprocess.run(["groff", "-ww", "-mandoc", "-Tutf8", "-z", page], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
