# SPDX-License-Identifier: Apache-2.0
"""The installed schema of reconciled.yaml and the reader are of one mind about each key."""
import pytest
import yaml

from harness import watch
from harness.schema import configuration
from harness.setup import SOURCE

WIDGETS = {"operator": "widgets.example.com", "watches": [watch("widgets") | {"handler": {"exec": ["/bin/true"]}}]}


def leaves(schema, path=""):
    """Each key that holds a value of its own: (path as the reader names it, its schema)."""
    for name, entry in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        nested = entry.get("items", entry.get("oneOf", [None, entry])[1])
        if "properties" in nested:
            yield from leaves(nested, inner + ("[0]" if "items" in entry else ""))
        else:
            yield inner, entry


def everything(schema, value):
    """A configuration that has every key: value(path, schema) is what stands there."""
    def build(schema, path):
        result = {}
        for name, entry in schema["properties"].items():
            inner = f"{path}.{name}" if path else name
            nested = entry.get("items", entry)
            if "properties" not in nested:
                result[name] = value(inner, entry)
            elif "items" in entry:
                result[name] = [build(nested, inner + "[0]")]
            else:
                result[name] = build(nested, inner)
        return result

    return build(schema, "")


@pytest.fixture
def problems(operator):
    """problems(configuration) -> what `reconciledctl check` says."""
    def problems(config):
        result = operator.ctl.run("check", str(operator.write_config(yaml.safe_dump(config))))
        return "".join(line for line in (result.stdout + result.stderr).splitlines(keepends=True) if ": warning: " not in line)

    return problems


def test_every_key_has_a_description():
    for path, entry in leaves(configuration().schema):
        assert entry["description"].endswith("."), path


def test_both_know_the_same_keys(problems):
    """A list of lists stands where each value belongs: the reader names every key, none of them as unknown."""
    config = everything(configuration().schema, lambda path, entry: [["wrong"]])
    # In parts: no more than 200 mistakes are told at once.
    apart = ("schedules", "startup")
    said = "".join(problems(part) for part in ({name: config[name]} for name in apart))
    said += problems({name: entry for name, entry in config.items() if name not in apart})
    assert "is unknown" not in said, said
    for path, _ in leaves(configuration().schema):
        assert path.removesuffix(".jq") in said, f"{path} is not named in {said}"
    named = {".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in error.absolute_path).replace(".[", "[")
             for error in configuration().iter_errors(config)}
    for path, _ in leaves(configuration().schema):
        assert named & {path, f"{path}[0]", path.removesuffix(".jq")}, f"the schema takes a list of lists as {path}"


def test_both_know_the_same_bounds(problems):
    """One beyond each bound is refused by both, the bound itself by none of them."""
    bounded = [(path, entry) for path, entry in leaves(configuration().schema) if entry.get("type") == "integer"
               and not path.startswith(("schedules", "startup"))]  # which share the tables of watches
    assert len(bounded) > 5
    for bound, step in ("minimum", -1), ("maximum", 1):
        beyond = everything_of(dict(bounded), lambda entry: entry[bound] + step)
        said = problems(beyond)
        wrong = {error.absolute_path[-1] for error in configuration().iter_errors(beyond)}
        for path, entry in bounded:
            assert f'{path}: "{entry[bound] + step}" is not a number' in said, f"{path} in {said}"
            assert path.rsplit(".", 1)[-1] in wrong
        within = everything_of(dict(bounded), lambda entry: entry[bound])
        assert "is not a number" not in problems(within)
        assert configuration().is_valid(within), list(configuration().iter_errors(within))


def everything_of(chosen, value):
    """WIDGETS with these keys."""
    config = yaml.safe_load(yaml.safe_dump(WIDGETS))
    for path, entry in chosen.items():
        place = config
        *folders, name = path.replace("watches[0]", "watches").split(".")
        for folder in folders:
            place = place["watches"][0] if folder == "watches" else place.setdefault(folder, {})
        place[name] = value(entry)
        if folders[-1:] == ["rate"]:
            place.setdefault("perSecond", 1)
    return config


@pytest.mark.parametrize("key, value", [
    ("deadline", "90"), ("deadline", "1.h"), ("deadline", "-1s"), ("deadline", 90), ("deadline", "1 h"),
    ("handler", {"exec": []}), ("handler", {"exec": "/bin/true"}), ("handler", {"exec": ["/bin/true"], "limits": {"cpu": "2c"}}),
    ("handler", {"exec": ["/bin/true"], "limits": {"memory": "1MB"}}), ("onStart", "never"), ("finalizer", "maybe"),
    ("trigger", "sometimes"), ("owns", {"kind": "Pod"}), ("owns", [{"kind": "Pod"}]), ("nmae", "x"),
])
def test_both_refuse(problems, key, value):
    config = {**WIDGETS, "watches": [{**WIDGETS["watches"][0], key: value}]}
    assert not configuration().is_valid(config)
    assert f"watches[0].{key}" in problems(config)


@pytest.mark.parametrize("key, value", [
    ("deadline", "1h30m"), ("deadline", "1.5s"), ("resync", 0), ("resync", "0"), ("readyCondition", True), ("readyCondition", "Installed"),
    ("handler", {"exec": ["/bin/true", 1000], "limits": {"cpu": 0.5, "memory": "256Mi", "pids": 10}}),
    ("handler", {"exec": ["/bin/true"], "limits": {"cpu": "500m", "memory": 268435456}}),
    ("trigger", {"jq": ".spec"}), ("trigger", "any"), ("namespaces", ["a", "!b*"]),
])
def test_both_take(problems, key, value):
    config = {**WIDGETS, "watches": [{**WIDGETS["watches"][0], key: value}]}
    configuration().validate(config)
    assert f"watches[0].{key}" not in problems(config)


@pytest.mark.parametrize("file", sorted(SOURCE.glob("examples/*/reconciled.yaml")), ids=lambda file: file.parent.name)
def test_the_examples_are_right(file):
    configuration().validate(yaml.safe_load(file.read_text(encoding="utf-8")))
