# SPDX-License-Identifier: Apache-2.0
"""Every example of README, CONTRIBUTING, docs/ and man/ is run as its reader would run it, or parsed with the reason why it is not
run. An example that nothing here knows fails the first test: add it to a test (`runs`), or to NOT_RUN with its reason."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
import yaml

from harness import Api, Devserver, wait_until, watch
from harness.documents import examples
from harness.process import clean_environment
from harness.schema import ANSWER, check_request
from harness.session import Document
from harness.setup import BUILD, SOURCE
from harness.wait import scaled

EXAMPLES = examples()
RUN = {}  # name of an example: what runs it


def runs(*names):
    """The test gets these examples, as `found`."""
    RUN.update({name: "here" for name in names})
    return pytest.mark.parametrize("found", [[EXAMPLES.get(name) for name in names]], ids=["documents"])


# Commands that are parsed only, and why.
NOT_RUN = {
    "CONTRIBUTING.md: meson setup build && ninja -C build":
        "they build everything and run every test",
    "docs/container.md: meson install -C build --destdir \"$PWD/build/image\"":
        "tests/container builds the same image with a base of its own: this one's comes from a registry",
    "docs/container.md: podman run --rm --entrypoint reconciledctl my-operator rbac --namespac":
        "the image is the reader's own; tests/cluster applies what rbac prints to a real server",
}
# Run where there is what they need; each of these tests reads the document.
RUN.update({
    "docs/systemd.md: dpkg-buildpackage -us -uc -b && apt install ../reconciled_*.deb": "tests/systemd/test_package.py",
    "docs/container.md: FROM reconciled": "tests/container/test_image.py",
    "docs/container.md: FROM reconciled (again)": "tests/container/test_image.py",
    **{name: "tests/systemd/test_journal.py" for name, example in EXAMPLES.items()
       if example.document == "docs/journal.md" and example.language == "sh"},
})
# Followed from the beginning to the end, by tests of their own.
FOLLOWED = {"docs/tutorial.md": ("tests/integration/test_tutorial.py", "tests/cluster/test_tutorial.py", "tests/container/test_image.py"),
            "docs/cookbook.md": ("tests/integration/test_cookbook.py",), "README.md": ("tests/integration/test_readme.py",),
            **{f"docs/from-{name}.md": ("tests/sdk/test_coming_from.py",) for name in ("kopf", "shell-operator", "controller-runtime")}}
# ... but for these, and why.
NOT_FOLLOWED = {("README.md", "Try it"): "./demo and ./check install packages and build; both are run by CI",
                ("docs/tutorial.md", "7. A container"): "its base comes from a registry; tests/container builds its file on another one"}
RUN.update({name: FOLLOWED[example.document][0] for name, example in EXAMPLES.items() if example.document in FOLLOWED})
RUN.update({name: "tests/integration/test_tty.py" for name, example in EXAMPLES.items() if example.document == "docs/debugging.md"})
RUN.update({name: "tests/sdk/test_page.py" for name, example in EXAMPLES.items() if example.document == "docs/kits.md"})
RUN.update({name: "tests/integration/test_torture.py" for name, example in EXAMPLES.items() if example.document == "docs/torture.md"})
RUN.update({name: "tests/integration/test_plan.py" for name, example in EXAMPLES.items() if example.document == "docs/plan.md"})
# The synopsis, and the line that each entry of a key ends with; its section EXAMPLES is run below.
RUN.update({name: "tests/integration/test_manual.py" for name, example in EXAMPLES.items()
            if example.document == "man/reconciled.yaml.5" and "operator: widgets.example.com" not in name})
# No code.
PICTURES = {f"docs/architecture.md: {name}" for name in ("reconciled", "supervisor", "API server", "run_carry_out()")}


def test_every_example_is_known():
    known = {*RUN, *NOT_RUN, *PICTURES}
    unknown, gone = set(EXAMPLES) - known, known - set(EXAMPLES)
    where = [f"{EXAMPLES[name].document}:{EXAMPLES[name].line}: {name}" for name in sorted(unknown)]
    assert not unknown, f"nothing runs these examples; tests/integration/test_documents.py says how to add them: {where}"
    assert not gone, f"these examples are not in the documents any more: {sorted(gone)}"


@pytest.mark.parametrize("path", sorted({path for path in RUN.values() if path != "here"}))
def test_the_other_tests_read_the_documents(path):
    text = (SOURCE / path).read_text(encoding="utf-8")
    for name in (name for name, runner in RUN.items() if runner == path):
        assert pathlib.Path(EXAMPLES[name].document).name in text, f"{path} does not read {EXAMPLES[name].document}"


@pytest.mark.parametrize("document", sorted(FOLLOWED))
def test_each_section_of_a_document_is_followed(document):
    """Its files are saved, or its heading is in a test."""
    found = Document(document)
    tests = "".join((SOURCE / path).read_text(encoding="utf-8") for path in FOLLOWED[document])
    unknown = [block for block in found.examples if block.text not in found.named.values() and block.heading not in tests
               and (document, block.heading) not in NOT_FOLLOWED]
    assert not unknown, unknown


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_what_is_not_run_is_parsed(name):
    text = EXAMPLES[name].text
    done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for word in re.findall(r"(?<!\S)(?:\./[a-z]+|(?:deploy|tools|examples|bench)/\S+)", text):
        assert (SOURCE / word).exists(), f"{word} is not there"


# --- the pieces that stories are made of


@pytest.fixture
def folder(sandbox):
    return sandbox.subfolder("documents")


@pytest.fixture
def shell(folder, sandbox):
    """shell(command, background=False): as a reader types it in the source folder, whose build is the one under test, and with
    `folder` for /tmp/widgets. In the background: the process, which is asked to end with the test and must end in order."""
    started, environment = [], clean_environment(sandbox.user(), {"HOME": str(folder)})

    def shell(command, background=False, expect=0, cwd=SOURCE):
        command = re.sub(r"(?<![\w/])build/", f"{BUILD}/", command).replace("$PWD/build", str(BUILD)).replace("/tmp/widgets", str(folder))
        if command.startswith("export "):
            pairs = subprocess.run(["sh", "-ec", command + "; env -0"], cwd=cwd, env=environment, capture_output=True, text=True, check=True)
            environment.update(pair.split("=", 1) for pair in pairs.stdout.split("\0") if "=" in pair)
            return ""
        if background:
            started.append(subprocess.Popen(["sh", "-c", "exec " + command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=(folder / "output").open("ab")))
            return started[-1]
        done = subprocess.run(["sh", "-ec", command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=scaled(60), check=False)
        assert done.returncode == expect, f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    yield shell
    left = [process for process in reversed(started) if process.poll() is None]
    for process in left:
        process.send_signal(signal.SIGTERM)
        process.wait(scaled(60))
    assert [process.returncode for process in left] == [0] * len(started), (folder / "output").read_text(encoding="utf-8")


def put(path, text, mode=0o755):
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def need(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"the examples need {missing}")


# --- README


def test_the_examples_that_the_readme_lists_have_tests_and_are_all():
    listed = set(re.findall(r"`examples/run ([\w-]+)`", (SOURCE / "README.md").read_text(encoding="utf-8")))
    tests = (SOURCE / "tests" / "integration" / "test_examples.py").read_text(encoding="utf-8")
    assert listed == set(re.findall(r'run\("([\w-]+)"\)', tests))
    there = {path.parent.name for path in (SOURCE / "examples").glob("*/reconciled.yaml")}
    assert listed == there - {"widgets", "seen"}, "widgets is ./demo's, seen has a test below"


def test_the_smallest_configuration_has_no_mistakes(folder, shell, devserver):
    shell(f"KUBECONFIG={devserver.kubeconfig} build/ctl/reconciledctl check examples/seen/reconciled.yaml")


# --- reconciled-handler(7)


def answers(devserver, make_operator, sandbox, handler, **more):
    operator = make_operator()
    operator.configure(devserver, watches=[{**watch("widgets", handler), "handler": handler, **more}], workers=1)
    operator.start()
    operator.wait_ready()
    return operator


def program_of(sandbox, text):
    return str(put(sandbox.subfolder("handler") / "handler", text))


@runs("man/reconciled-handler.7: {\"version\": 1, \"action\": \"reconcile\", \"reason\": \"changed\", \"attempt\":")
def test_the_manual_s_request_is_one(found):
    text = found[0].text
    assert text.count("...") == 1, "what is left out is written ..."
    whole = text.replace('{"apiVersion": ...}', json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {
        "name": "a", "namespace": "default", "uid": "u"}}))
    check_request(json.loads(whole))


@runs("man/reconciled-handler.7: {\"metrics\": [{\"name\": \"backups\", \"action\": \"add\", \"value\": 1, \"labels\"")
def test_the_manual_s_metric_is_one(found):
    ANSWER.validate(json.loads(found[0].text))


@runs("docs/metrics.md: {\"metrics\": [")
def test_the_metrics_of_the_page_are_some(found):
    ANSWER.validate(json.loads(found[0].text))


@runs("man/reconciled-handler.7: #!/bin/sh")
def test_the_manual_s_handler_in_shell(found, devserver, make_operator, sandbox, widgets):
    need("jq")
    operator = answers(devserver, make_operator, sandbox, {"exec": [program_of(sandbox, found[0].text)]})
    widgets.create("a", spec={"size": 3})
    wait_until(lambda: widgets.get("a").get("status") == {"size": 3}, lambda: f"the status; {operator.output.text()}")
    widgets.delete("a")
    operator.wait_for_log("cleaning up after a")
    assert not operator.logs(level="error"), operator.output.text()


@runs("man/reconciled-handler.7: import json, sys")
def test_the_manual_s_handler_that_serves(found, devserver, make_operator, sandbox, widgets):
    handler = {"serve": ["/usr/bin/python3", program_of(sandbox, found[0].text)]}
    operator = answers(devserver, make_operator, sandbox, handler)
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, lambda: f"the status; {operator.output.text()}")


@runs("man/reconciled-handler.7: import json, sys (again)")
def test_the_manual_s_handler_of_a_batch(found, devserver, make_operator, sandbox, widgets):
    handler = {"exec": ["/usr/bin/python3", program_of(sandbox, found[0].text)], "batch": {"max": 20}}
    operator = answers(devserver, make_operator, sandbox, handler)
    for name in ("a", "b", "c"):
        widgets.create(name)
    wait_until(lambda: all(item.get("status") == {"seen": True} for item in widgets.list()["items"]),
               lambda: f"each status; {operator.output.text()}")


@runs("man/reconciled-handler.7: #!/usr/bin/python3")
def test_the_manual_s_handler_with_a_child(found, api, devserver, make_operator, sandbox, widgets):
    operator = answers(devserver, make_operator, sandbox, {"serve": [program_of(sandbox, found[0].text)]}, finalizer=True)
    config_maps = api.resource("v1", "configmaps", "default")
    widgets.create("a", spec={"size": 3})
    wait_until(lambda: widgets.get("a").get("status") == {"size": 3}, lambda: f"the status; {operator.output.text()}")
    assert config_maps.get("a")["data"] == {"size": "3"}
    widgets.create("b", spec={"size": -1})
    operator.wait_for_log("spec.size is negative", level="error")
    widgets.delete("a")
    wait_until(lambda: not widgets.exists("a") and not config_maps.exists("a"), "the end of both")


@runs("man/reconciled-handler.7: cc -shared -fPIC -o widgets.so widgets.c")
def test_the_manual_s_plugin_is_built(found, folder, devserver, make_operator, sandbox, widgets):
    need("cc")
    for file in ("examples/plugin/widgets.c", "plugin/reconciled-plugin.h"):
        shutil.copy(SOURCE / file, folder)
    # Installed, the header lies in /usr/include.
    subprocess.run(["sh", "-ec", found[0].text], cwd=folder, check=True, env={**os.environ, "C_INCLUDE_PATH": str(folder)})
    operator = answers(devserver, make_operator, sandbox, {"plugin": str(folder / "widgets.so")})
    widgets.create("a", spec={"size": 3})
    wait_until(lambda: widgets.get("a").get("status"), lambda: f"the status; {operator.output.text()}")


# --- configurations


def checked(configuration, folder, devserver, shell):
    """The example as it stands, with its programs where they can be: what `check` says."""
    for path in sorted(set(re.findall(r"/usr/libexec/[\w./-]+|/etc/(?:reconciled|widgets)/[\w./-]+", configuration)), key=len, reverse=True):
        there = folder / path.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        if not there.exists():
            put(there, "#!/bin/sh\n")
        configuration = re.sub(rf"(?<![\w.]){re.escape(path)}(?![\w.])", str(there), configuration)
    file = put(folder / "reconciled.yaml", configuration, 0o644)
    return shell(f"KUBECONFIG={devserver.kubeconfig} build/ctl/reconciledctl check {file}")


@runs("man/reconciled.yaml.5: operator: widgets.example.com", "man/reconciled.yaml.5: operator: widgets.example.com (again)")
def test_the_manual_s_configurations_have_no_mistakes(found, folder, devserver, shell):
    for example in found:
        assert "no mistakes found" in checked(example.text, folder, devserver, shell)


def test_the_manual_s_configuration_works(folder, devserver, api, make_operator):
    """The longer one, with handlers that note what they get, on objects that it selects and others."""
    configuration = yaml.safe_load(EXAMPLES["man/reconciled.yaml.5: operator: widgets.example.com (again)"].text)
    seen = folder / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    serve = put(folder / "serve.py", f"""import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    path = {str(folder)!r} + "/seen/" + request["object"]["metadata"]["name"]
    with open(path + ".new", "w") as file:
        file.write(line)
    os.replace(path + ".new", path)
    print(json.dumps({{"id": request["id"]}}), flush=True)
""")
    node = put(folder / "node", f'#!/bin/sh\ncat >{seen}/"$RECONCILED_NAME"\n')
    configuration["watches"][0]["handler"]["serve"][1] = str(serve)
    configuration["watches"][1]["handler"]["exec"] = [str(node)]
    operator = make_operator()
    operator.configure(devserver, watches=configuration["watches"], workers=2)
    operator.start()
    operator.wait_ready()
    for namespace in ("team-a", "team-test"):
        api.resource("v1", "namespaces", None).create(namespace)
        api.resource("v1", "secrets", namespace).create("password", stringData={"password": "x"})
        api.resource("example.com/v1", "widgets", namespace).create(f"in-{namespace}", spec={"secretRef": {"name": "password"}})
    nodes = api.resource("v1", "nodes", None)
    nodes.create("used", metadata={"labels": {"widgets.example.com/use": "yes"}})
    nodes.create("other")

    def related():
        request = json.loads((seen / "in-team-a").read_text(encoding="utf-8"))
        return [secret["metadata"]["name"] for secret in request["related"]]

    wait_until(lambda: related() == ["password"], lambda: f"the Secret; {operator.output.text()}")
    wait_until((seen / "used").exists, lambda: f"the node; {operator.output.text()}")
    assert {path.name for path in seen.iterdir()} == {"in-team-a", "used"}
    assert not operator.logs(level="error"), operator.output.text()


@runs("docs/metrics.md: gateway: {listen: 127.0.0.1:9464}")
@pytest.mark.slow
def test_the_gateway_s_configurations_have_no_mistakes(found, folder, devserver, shell):
    least = EXAMPLES["man/reconciled.yaml.5: operator: widgets.example.com"].text
    tls = folder / "etc/reconciled/tls"
    tls.mkdir(parents=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", tls / "tls.key",
                    "-out", tls / "tls.crt"], check=True, capture_output=True)
    for line in found[0].commands():
        assert "no mistakes found" in checked(least + line + "\n", folder, devserver, shell)


@runs("docs/replicas.md: replicas: {namespace: widgets}")
def test_the_configuration_of_replicas_has_no_mistakes(found, folder, devserver, shell):
    least = EXAMPLES["man/reconciled.yaml.5: operator: widgets.example.com"].text
    said = checked(least + found[0].text, folder, devserver, shell)
    assert "no mistakes found" in said and "one leads by Lease widgets/" in said and "Recreate, once" in said


@runs("docs/replicas.md: replicas: {namespace: widgets, lease: 7e6a.example.com, duration: 15s,")
def test_the_configuration_of_a_shared_lease_has_no_mistakes(found, folder, devserver, shell):
    least = EXAMPLES["man/reconciled.yaml.5: operator: widgets.example.com"].text
    said = checked(least + found[0].text, folder, devserver, shell)
    assert "no mistakes found" in said and "one leads by Lease widgets/7e6a.example.com" in said and "take `compatible` out" in said


# --- credentials of handlers


@runs("docs/credentials.md: handler:")
def test_the_handler_s_credentials_have_no_mistakes(found, folder, devserver, shell):
    least = yaml.safe_load(EXAMPLES["man/reconciled.yaml.5: operator: widgets.example.com"].text)
    least["watches"][0].update(yaml.safe_load(found[0].text))
    least["watches"][0]["handler"]["user"] = "nobody"  # the example's user is the reader's
    shell("export REGION=north")
    assert "no mistakes found" in checked(yaml.safe_dump(least), folder, devserver, shell)


@runs("docs/credentials.md: #!/usr/bin/env python3")
def test_the_handler_that_asks_the_server(found, api, devserver, make_operator, sandbox):
    api.resource("v1", "serviceaccounts", "default").create("helper")
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("one")
    operator = make_operator()
    options = {"kubernetes": {"serviceAccount": "helper", "namespace": "default"}}
    operator.configure(devserver, [watch("widgets", [program_of(sandbox, found[0].text)], handler_options=options)])
    operator.start_ready().wait_synced()
    widgets = api.resource("example.com/v1", "widgets", "default")
    widgets.create("a")
    count = len(config_maps.list()["items"])
    wait_until(lambda: widgets.get("a").get("status") == {"configMaps": count}, lambda: f"the status; {operator.output.text()}")


# --- the rest of docs/


@runs("docs/metrics.md: reconciled_watch_lag_seconds > 120 unless reconciled_watch_refused_nam")
def test_the_alerts_name_metrics_that_there_are(found):
    manual = (SOURCE / "docs" / "metrics.md").read_text(encoding="utf-8").replace(found[0].text, "")
    for line in found[0].commands():
        assert line.count("(") == line.count(")"), line
        names = re.findall(r"\b(?:reconciled|workqueue|controller_runtime)_\w+", line)
        assert names, line
        for name in names:
            short = re.sub(r"^reconciled_(watch|config|handler)|_bucket$", "", name)
            assert f"`{name.removesuffix('_bucket')}`" in manual or f"`{short}`" in manual, f"{name} is not in the table above"


@runs("docs/devserver.md: reconciled-devserver --listen 127.0.0.1:8080 --kubeconfig dev.kubeconf",
      "docs/devserver.md: curl -d '{\"match\": {\"verb\": \"patch\", \"resource\": \"widgets/status\"}, \"s",
      "docs/devserver.md: - match: {verb: list, resource: widgets, continue: true}")
@pytest.mark.slow
def test_the_devserver_s_examples(found, folder, shell, sandbox):
    need("kubectl", "curl")
    steps, faults, file = found
    shutil.copy(SOURCE / "examples/widgets/crd.yaml", folder / "crd.yaml")
    start, look = steps.commands()
    shell("export PATH=\"$PWD/build/devserver:$PATH\"")
    # Port 8080 may be in use here.
    shell(start.rstrip("& ").replace(":8080", ":0"), background=True, cwd=folder)
    kubeconfig = folder / "dev.kubeconfig"
    wait_until(kubeconfig.exists, "the devserver")
    wait_until(lambda: "No resources found" in shell(look, cwd=folder), "its answer")
    shell(f"export URL={yaml.safe_load(kubeconfig.read_text(encoding='utf-8'))['clusters'][0]['cluster']['server']}")
    said = [shell(command.replace("curl ", "curl -sSf ")) for command in faults.commands()]
    assert '"hit"' in said[2].replace("hits", "hit") and "widgets/status" in said[2], said
    faulty = put(folder / "faults.yaml", file.text, 0o644)
    crd = list(yaml.safe_load_all((folder / "crd.yaml").read_text(encoding="utf-8")))
    other = Devserver(sandbox, load=crd, arguments=["--faults", str(faulty)]).start()
    widgets = other.api.resource("example.com/v1", "widgets", "default")
    for name in ("a", "b"):
        widgets.create(name)
    first = other.api.request("GET", "/apis/example.com/v1/widgets?limit=1")
    token = first["metadata"]["continue"]
    assert other.api.raw("GET", f"/apis/example.com/v1/widgets?limit=1&continue={token}").code == 410


@runs("docs/journal.md: kubectl logs widgets-operator-0 | jq -r 'select(.message_id == \"d9a4f6")
def test_the_log_of_a_container_answers(found, folder, shell, devserver, make_operator, make_handler):
    need("jq")
    operator = make_operator()
    operator.configure(devserver, watches=[watch("widgets", make_handler())])
    operator.start()
    operator.wait_ready()
    operator.child("watcher").kill()
    operator.wait_exit(70)
    log = put(folder / "log", operator.output.text(), 0o644)
    put(folder / "kubectl", f'#!/bin/sh\n[ "$*" = "logs widgets-operator-0" ] && cat {log}\n')
    shell(f"export PATH={folder}:\"$PATH\"")
    assert "watcher" in shell(found[0].text)
