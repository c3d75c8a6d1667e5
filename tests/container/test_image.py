# SPDX-License-Identifier: Apache-2.0
"""The image that deploy/Containerfile makes, built and run by podman, as the manifests run it."""
import json
import shutil
import subprocess
import tempfile
import pathlib
import uuid

import pytest
import yaml

from harness import wait_until, watch
from harness.container import unavailable
from harness.documents import examples
from harness.session import Document
from harness.setup import SOURCE
from harness.system import install_into, root_folder
from harness.wait import scaled

# The image is built once.
pytestmark = pytest.mark.xdist_group("image")


def podman(*arguments, check=True, **options):
    done = subprocess.run(["podman", "--cgroup-manager=cgroupfs", *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=scaled(300), **options)
    if check and done.returncode != 0:
        raise AssertionError(f"podman {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done


@pytest.fixture(scope="module")
def image():
    reason = unavailable() or (None if shutil.which("podman") else "there is no podman")
    if reason:
        pytest.skip(reason)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-image-"))
    tag = "localhost/reconciled-test-" + uuid.uuid4().hex[:8]
    try:
        # A Debian with the libraries stands in for the registry's.
        tar = subprocess.Popen(["tar", "-C", root_folder(), "--exclude=./dev/*", "-cf", "-", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "-q", "-", f"{tag}-base:1"], stdin=tar.stdout, check=True, capture_output=True)
        tar.stdout.close()
        assert tar.wait() == 0
        install_into(folder)
        podman("build", "--isolation=chroot", "--pull=never", "--build-arg", f"BASE={tag}-base:1",
               "-f", SOURCE / "deploy" / "Containerfile", "-t", f"{tag}:1", folder)
        yield f"{tag}:1"
    finally:
        podman("rmi", "--force", f"{tag}:1", f"{tag}-base:1", check=False)
        shutil.rmtree(folder, ignore_errors=True)


def test_the_image_is_what_the_manifests_expect(image):
    config = json.loads(podman("image", "inspect", image).stdout)[0]["Config"]
    assert config["Entrypoint"] == ["/usr/bin/reconciled"] and config["User"] == "65532:65532"


# Stands in for the network: the python3 that it installs says that it was asked.
INSTALLER = """#!/bin/sh
[ "$(id -u)" = 0 ] || { echo "apt-get: are you root?" >&2; exit 100; }
case "$*" in *install*python3*) ;; *) exit 0 ;; esac
printf '#!/bin/sh\\necho "$@"\\n' >/usr/bin/python3 && chmod 755 /usr/bin/python3
"""


def test_the_image_of_the_tutorial(image, tmp_path):
    """docs/tutorial.md: handler and configuration lie beside each other in it, for the user that the operator runs as."""
    for name, text in {**Document("docs/tutorial.md").named, "apt-get": INSTALLER}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "apt-get").chmod(0o755)
    assert "FROM reconciled\n" in (tmp_path / "Containerfile").read_text(encoding="utf-8")
    base, tag = (f"{image.rsplit(':', 1)[0]}-tutorial-{name}:1" for name in ("base", "operator"))
    (tmp_path / "base").write_text(f"FROM {image}\nUSER root\nCOPY apt-get /usr/local/sbin/\nUSER 65532:65532\n", encoding="utf-8")
    containerfile = (tmp_path / "Containerfile").read_text(encoding="utf-8").replace("FROM reconciled\n", f"FROM {base}\n")
    (tmp_path / "operator").write_text(containerfile, encoding="utf-8")
    limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
    try:
        for name, result in (("base", base), ("operator", tag)):
            podman("build", "--isolation=chroot", "--pull=never", "-f", tmp_path / name, "-t", result, tmp_path)
        said = podman("--runtime", "runc", "run", "--rm", "--network=none", "--read-only", *limits, "-e", "INDEX=/tmp/index",
                      "--entrypoint", "reconciledctl", tag, "check").stdout
        assert "operator pages.example.com, 3 watches, 4 workers: no mistakes found" in said, said
        said = podman("--runtime", "runc", "run", "--rm", "--network=none", *limits, "--entrypoint", "/etc/reconciled/handler.py", tag).stdout
        assert said == "/etc/reconciled/handler.py\n", said
        assert podman("image", "inspect", "--format", "{{.Config.User}}", tag).stdout.strip() == "65532:65532"
    finally:
        podman("rmi", "--force", tag, base, check=False)


def test_it_runs_as_the_manifests_run_it(image, devserver, widgets, sandbox):
    folder = sandbox.subfolder("etc")
    shutil.copy(devserver.kubeconfig, folder / "kubeconfig")
    (folder / "kubeconfig").chmod(0o644)
    (folder / "handler").write_text("#!/bin/sh\necho '{\"status\": {\"seen\": true}}'\n", encoding="utf-8")
    (folder / "handler").chmod(0o755)
    (folder / "reconciled.yaml").write_text(yaml.safe_dump({
        "operator": "widgets.example.com", "cluster": {"kubeconfig": "/etc/reconciled/kubeconfig"},
        "watches": [watch("widgets", ["/etc/reconciled/handler"])]}), encoding="utf-8")
    name = "reconciled-test-" + uuid.uuid4().hex[:8]
    mount = "rw,nosuid,nodev,mode=0700"
    podman("--runtime", "runc", "run", "-d", "--name", name, "--network=host", "--read-only", "--cap-drop=all",
           "--security-opt=no-new-privileges", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
           "--tmpfs", f"/var/lib/reconciled:{mount},U", "--tmpfs", f"/run/reconciled:{mount},U",
           "-v", f"{folder}:/etc/reconciled:ro", image)
    try:
        widgets.create("a", spec={})
        wait_until(lambda: widgets.get("a").get("status") == {"seen": True},
                   lambda: f"the handler's status; {podman('logs', name, check=False)}")
        assert podman("--runtime", "runc", "exec", name, "reconciledctl", "health", "--ready").returncode == 0
        podman("--runtime", "runc", "stop", "-t", "30", name)
        state = json.loads(podman("inspect", name).stdout)[0]["State"]
        assert state["ExitCode"] == 0, state
    finally:
        podman("--runtime", "runc", "rm", "--force", name, check=False)


APT_GET = """#!/bin/sh
# Stands in for the network: what it would install is a python3 that says so.
[ "$(id -u)" = 0 ] || { echo "apt-get: are you root?" >&2; exit 100; }
case "$*" in *install*python3*) ;; *) exit 0 ;; esac
printf '#!/bin/sh\\necho interpreted\\n' >/usr/bin/python3 && chmod 755 /usr/bin/python3
"""


def containerfiles():
    """Those of docs/container.md."""
    return [example.text for name, example in examples().items() if name.startswith("docs/container.md: FROM ")]


def test_the_containerfiles_of_the_manual(image, tmp_path):
    """Handlers alone, and with an interpreter that only root may install; the operator does not run as root in either."""
    shell, python = containerfiles()
    tags = [f"{image.rsplit(':', 1)[0]}-{name}:1" for name in ("apt", "shell", "python")]
    (tmp_path / "handlers").mkdir()
    for path, text in ((tmp_path / "handlers" / "handler", "#!/bin/sh\n"), (tmp_path / "handler.py", "#!/usr/bin/python3\n"),
                       (tmp_path / "apt-get", APT_GET)):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    (tmp_path / "handler.py").chmod(0o644)
    (tmp_path / "reconciled.yaml").write_text("operator: widgets.example.com\n", encoding="utf-8")
    first = f"FROM {image}\nUSER root\nCOPY apt-get /usr/local/sbin/\nUSER 65532:65532\n"
    try:
        for tag, text in zip(tags, (first, shell.replace("FROM reconciled", f"FROM {tags[0]}"),
                                    python.replace("FROM reconciled", f"FROM {tags[0]}"))):
            (tmp_path / "Containerfile").write_text(text, encoding="utf-8")
            podman("build", "--isolation=chroot", "--pull=never", "-f", tmp_path / "Containerfile", "-t", tag, tmp_path)
        for tag in tags[1:]:
            config = json.loads(podman("image", "inspect", tag).stdout)[0]["Config"]
            assert config["Entrypoint"] == ["/usr/bin/reconciled"] and config["User"] == "65532:65532"

        def run(tag, program, *arguments):
            return podman("--runtime", "runc", "run", "--rm", "--network=none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
                          "--entrypoint", program, tag, *arguments).stdout

        run(tags[1], "/usr/libexec/widgets/handler")
        assert run(tags[2], "/usr/libexec/widgets/handler.py") == "interpreted\n"
        assert run(tags[2], "/usr/bin/id", "-u") == "65532\n"
    finally:
        podman("rmi", "--force", *reversed(tags), check=False)
