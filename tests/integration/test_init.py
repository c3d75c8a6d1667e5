# SPDX-License-Identifier: Apache-2.0
"""reconciledctl init: a folder that works at once, in each language whose toolchain is at hand."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

from harness import wait_until
from harness.session import Session
from harness.setup import BUILD, GO_CACHE, SOURCE

NEEDS = {"sh": "jq", "python": "python3", "node": "node", "go": "go", "rust": "cargo", "c": "cc"}
GO = [pytest.mark.slow, pytest.mark.xdist_group("kit-go")]  # one process, after another has compiled Go's library
FIELDS = "--field size:int --field text --field tags:string[] --field open:bool --field share:number"
DEPLOY = {"crd.yaml", "deployment.yaml", "kustomization.yaml", "namespace.yaml", "networkpolicy.yaml", "podmonitor.yaml", "rbac.yaml"}


@pytest.fixture
def session(sandbox):
    with Session(sandbox, sandbox.subfolder("reader")) as session:
        session.type(f'export PATH="{BUILD}/supervisor:{BUILD}/ctl:{BUILD}/devserver:$PATH"')
        yield session


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]


def refused(session, words, expect=64):
    session.type(f"reconciledctl init {words}", expect=expect)
    return session.errors()


def add_toolchain(session, language):
    """Of Go the one that builds the kit, which compiles its library once for all tests."""
    tool = shutil.which(NEEDS[language], path=f"/usr/lib/go-1.19/bin:{os.environ['PATH']}")
    if not tool:
        pytest.skip(f"{NEEDS[language]} is not installed")
    session.type(f'export PATH="$PATH:{pathlib.Path(tool).parent}" CGO_ENABLED=0 GOCACHE="{GO_CACHE}"')


@pytest.mark.parametrize("language", ["sh", "python", "c", "node", pytest.param("go", marks=pytest.mark.long),
                                      pytest.param("rust", marks=pytest.mark.long)])
def test_a_new_operator_works_at_once(session, language):
    add_toolchain(session, language)
    said = session.type(f"reconciledctl init pages --kind Page {FIELDS} --lang {language} --finalizer --child ConfigMap")
    assert "pages: an operator for Page (pages.example.com)" in said
    shown = session.type("cd pages && make test")
    assert "no mistakes found" in shown and "+ create ConfigMap default/example" in shown and "result: success" in shown
    session.type("set -m; make run &")
    wait_until(lambda: session.type("KUBECONFIG=.run/kubeconfig kubectl apply -f example.yaml; true"),
               lambda: f"the server; {session.errors()}")
    session.type("export KUBECONFIG=$PWD/.run/kubeconfig")
    wait_until(lambda: "Ready" in session.type("kubectl get pages example; true"), lambda: f"the phase; {session.errors()}")
    assert "example" in session.type("kubectl get configmap example")
    session.type("make reload")
    wait_until(lambda: "(requested)" in session.type("RUNTIME_DIRECTORY=.run/run reconciledctl explain pages default/example"),
               lambda: f"another run; {session.errors()}")
    session.type("make run", expect=2)
    assert "another `make run` is at work here" in session.errors()
    session.type("kubectl delete page example")
    assert "example" not in session.type("kubectl get pages,configmaps -o name")
    session.type("kill -INT -- -$!; wait %1; true")
    assert "operator pages.example.com has stopped" in session.errors()
    session.type("kubectl get pages", expect=1)  # the server has gone as well
    assert not (session.folder / "pages/.run").exists()


def served(session, language, requests):
    """The answers of a new operator's handler. Its requests are written as the operator writes them."""
    add_toolchain(session, language)
    session.type(f"reconciledctl init pages --kind Page --field size:int --lang {language}")
    config = yaml.safe_load((session.folder / "pages/reconciled.yaml").read_text(encoding="utf-8"))
    (session.folder / "pages/requests").write_text("".join(f"{request}\n" for request in requests), encoding="utf-8")
    command = " ".join(config["watches"][0]["handler"]["serve"])
    return [json.loads(line) for line in session.type(f"cd pages && make -s; {command} <requests").splitlines() if line.startswith("{")]


def request_for(id, spec):
    return ('{"id":%d,"version":1,"action":"reconcile","object":{"metadata":{"name":"a","namespace":"default"},"spec":%s}}'
            % (id, spec))


@pytest.mark.plain_only("the handlers are no programs of ours")
@pytest.mark.parametrize("language", ["python", "c", "node", pytest.param("go", marks=GO), pytest.param("rust", marks=pytest.mark.long)])
def test_an_object_that_cannot_be_read_fails_alone(session, language):
    deep = f'{{"size":1,"more":{"[" * 11_000}{"]" * 11_000}}}'
    first, second = served(session, language, [request_for(7, deep), request_for(8, '{"size":1}')])
    if language == "node":
        assert first["id"] == 7
    else:
        assert first == {"id": 7, "error": first["error"], "permanent": True}
        assert first["error"].startswith("the request cannot be read")
    assert second == {"id": 8, "status": {"phase": "Ready"}}


@pytest.mark.plain_only("the handler is no program of ours")
def test_no_nul_cuts_a_member_short_in_c(session):
    harmless, wrong = r'{"size":1,"text":"C:\\u0000"}', r'{"size":1,"text":"C:\u0000"}'
    first, second, third = served(session, "c", [request_for(7, wrong), request_for(8, r'{"size\u0000":1}'), request_for(9, harmless)])
    for answer, number in ((first, 7), (second, 8)):
        assert answer == {"id": number, "error": "the request cannot be read", "permanent": True}
    assert third == {"id": 9, "status": {"phase": "Ready"}}


@pytest.mark.plain_only("the handler is no program of ours")
@pytest.mark.slow
@pytest.mark.xdist_group("kit-go")
def test_members_that_only_look_like_the_fields(session):
    """A number that the field could not hold tells which member was read."""
    wrong = '{"size":1,"SIZE":"no number","ſize":"no number"}'
    requests = [request_for(7, wrong), request_for(8, '{"size":"no number"}')]
    requests[0] = requests[0].replace('"spec"', '"Metadata":{"name":[]},"spec"')
    first, second = served(session, "go", requests)
    assert first == {"id": 7, "status": {"phase": "Ready"}}
    assert second["id"] == 8 and second["permanent"]


def test_a_server_that_does_not_start_ends_it(session):
    session.type("reconciledctl init pages --kind Page; cd pages; echo '{' >deploy/crd.yaml")
    session.type("make run", expect=2)
    assert not (session.folder / "pages/.run").exists()


@pytest.mark.parametrize("language", NEEDS)
@pytest.mark.parametrize("more", ["", "--finalizer", f"--child Deployment {FIELDS}"])
def test_every_manifest_can_be_read(session, language, more):
    session.type(f"reconciledctl init new --kind Box --group boxes.test --plural Box=boxen --lang {language} {more}")
    folder = session.folder / "new"
    assert {each.name for each in (folder / "deploy").iterdir()} == DEPLOY
    found = {document["kind"]: document for path in folder.glob("deploy/*.yaml") for document in documents(path)}
    crd = found["CustomResourceDefinition"]
    assert crd["metadata"]["name"] == "boxen.boxes.test" and crd["spec"]["names"]["singular"] == "box"
    listed = found["Kustomization"]["resources"]
    assert set(listed) == DEPLOY - {"kustomization.yaml", "podmonitor.yaml"}
    rules = {resource: rule["verbs"] for rule in found["ClusterRole"]["rules"] for resource in rule["resources"]}
    assert ("deployments" in rules) == ("Deployment" in more) and "boxen" in rules
    config, example = documents(folder / "reconciled.yaml")[0], documents(folder / "example.yaml")[0]
    assert config["watches"][0].get("finalizer", False) == ("--finalizer" in more)
    columns = {column["name"] for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]}
    if "size" in more:
        assert example["spec"] == {"size": 1, "text": "text", "tags": ["text"], "open": True, "share": 1.5}
        assert {"Size", "Text", "Open", "Share"} < columns
    for path in folder.rglob("*"):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        assert "@?" not in text and not any(line.endswith(" ") for line in text.splitlines()), path


@pytest.mark.parametrize("kind, plural", [("Page", "pages"), ("Box", "boxes"), ("Policy", "policies"), ("Gateway", "gateways"),
                                          ("Batch", "batches"), ("Class", "classes")])
def test_plurals(session, kind, plural):
    assert f"({plural}.example.com)" in session.type(f"reconciledctl init new --kind {kind}")


def test_for_programs(session):
    assert json.loads(session.type("reconciledctl init --json pages --kind Page --lang go")) == {"folder": "pages", "handler": "main.go"}


def test_mistakes_write_nothing(session):
    for words, said in (
            ("pages", "--kind says which kind"), ("pages --kind Page --plural Box=boxen", "for the kind of --kind"), ("pages --kind page", "begins with a capital letter"),
            ("Pages --kind Page", "the folder names the operator"), ("pages --kind Page --group example", "a group is a domain"),
            ("pages --kind Page --field Size:int", "begins with a small letter"), ("pages --kind Page --field size:float", "there are the types"),
            ("pages --kind Page --field a --field a:int", "there are two fields a"), ("pages --kind Page --field on:bool", "YAML reads"),
            ("pages --kind Page --lang perl", "there are sh, python"), ("pages --kind Page --child Pod", "there are examples of"),
            ("pages --kind Page --plural Page=x_y", "--plural")):
        assert said in refused(session, words), words
    assert list(session.folder.glob("[Pp]ages")) == []


def test_a_folder_that_is_there_is_left_alone(session):
    session.type("mkdir pages && echo mine >pages/handler")
    assert "pages: File exists" in refused(session, "pages --kind Page", 74)
    assert session.type("ls -A pages; cat pages/handler") == "handler\nmine\n\n"


def test_the_templates_are_all_built_in():
    text = (SOURCE / "ctl/meson.build").read_text(encoding="utf-8")
    for path in (SOURCE / "ctl/init/templates").rglob("*"):
        assert path.is_dir() or f"'init/templates/{path.relative_to(SOURCE / 'ctl/init/templates')}'" in text, path
    assert subprocess.run([str(BUILD / "ctl/reconciledctl"), "init", "--help"], capture_output=True, text=True, check=True).stdout.count("--kind") > 1
