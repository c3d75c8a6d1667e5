# SPDX-License-Identifier: Apache-2.0
"""docs/kits.md: what a reader copies from it works."""
import json
import subprocess

import pytest
import yaml

from harness.session import Document
from harness.setup import SOURCE
from harness.wait import scaled

import kits

PAGE = Document("docs/kits.md")


def save(folder, files):
    for name, text in files.items():
        # Cargo knows one place for sources.
        path = folder / "src" / name if name.endswith(".rs") else folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


@pytest.mark.slow
def test_the_handler_of_the_page(kit, tmp_path):
    """It is saved, built and tested by the commands that stand there, and asked."""
    section = PAGE.section(kit.heading)
    save(tmp_path, PAGE.files_of(section))
    environment = {**kits.ENVIRONMENT, **kit.tools, **kit.environment, "SDK": str(kit.folder / "sdk"), "CARGO_TARGET_DIR": "target"}
    for example in section:
        if example.language == "sh" and not example.text.startswith("pip install"):  # which may need a network: test_python.py
            kits.run(["sh", "-ec", example.text], cwd=tmp_path, env=environment)
    for size, answer in ((3, {"status": {"size": 3}}), (-1, {"error": "spec.size is negative", "permanent": True}),
                         (101, {"error": "there is no room for it now", "retryAfter": kit.hour})):
        request = {"version": 1, "action": "reconcile", "reason": "added", "attempt": 1, "lastError": "", "watch": "widgets",
                   "object": {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "apple", "uid": "1"},
                              "spec": {"size": size}}}
        done = subprocess.run(kit.page, cwd=tmp_path, env=environment, input=json.dumps(request), capture_output=True, text=True,
                              check=False, timeout=scaled(60))
        assert done.returncode == 0 and json.loads(done.stdout) == answer, done.stderr
        assert size != 3 or done.stderr == "info: the size is 3\n"
    for size in ("1e+21", "100000000000000000000", "2.5", '"500"'):
        text = json.dumps(request).replace('"size": 101', f'"size": {size}')
        assert size in text
        done = subprocess.run(kit.page, cwd=tmp_path, env=environment, input=text, capture_output=True, text=True, check=False,
                              timeout=scaled(60))
        answer = json.loads(done.stdout)
        assert set(answer) == {"error", "permanent"} and answer["permanent"] and "spec.size" in answer["error"], (size, answer)


@pytest.mark.parametrize("kit", [kits.parameter("python")], indirect=True)
@pytest.mark.parametrize("name", ["reconciled.yaml", "parallel.yaml"])
def test_without_a_cluster(kit, tmp_path, programs, name):
    save(tmp_path, PAGE.named)
    config = yaml.safe_load(PAGE.named[name])
    config["watches"][0]["handler"]["environment"] = kit.environment  # instead of pip
    save(tmp_path, {"reconciled.yaml": yaml.safe_dump(config)})
    [command] = [example.text for example in PAGE.section("Try one without a cluster") if example.language != "yaml"]
    shown = kits.run([programs["reconciledctl"], *command.split()[1:]], cwd=tmp_path, env=kits.ENVIRONMENT)
    assert "info: the size is 3" in shown and "result: success" in shown


@pytest.mark.parametrize("kit", [kits.parameter("python")], indirect=True)
@pytest.mark.parametrize("watch, shown", [("nightly", "default.apple"), ("startup", "startedAt")])
def test_a_schedule_without_a_cluster(kit, tmp_path, programs, watch, shown):
    save(tmp_path, PAGE.named)
    config = yaml.safe_load(PAGE.named["schedules.yaml"])
    for entry in (config["schedules"][0], config["startup"]):
        entry["handler"]["environment"] = kit.environment  # instead of pip
    save(tmp_path, {"schedules.yaml": yaml.safe_dump(config)})
    [command] = [line for line in (SOURCE / "docs/kits.md").read_text(encoding="utf-8").split("`") if line.startswith("reconciledctl run --config s")]
    said = kits.run([programs["reconciledctl"], *command.replace("nightly", watch).split()[1:]], cwd=tmp_path, env=kits.ENVIRONMENT)
    assert shown in said and "result: success" in said


def test_each_kit_is_on_the_page():
    assert set(kits.KITS) <= {example.heading.lower() for example in PAGE.examples}
