# SPDX-License-Identifier: Apache-2.0
"""handler.credentials: files that one handler alone may read."""
import contextlib
import os
import signal
import stat
import subprocess
import time

import pytest
import yaml

from harness import Operator, wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID
from harness.process import Entitled
from harness.rights import OTHER_GROUP, USER, write_list

SECRET = "correct-horse-battery"


@pytest.fixture
def entitled(sandbox):
    """An operator with the right to change users."""
    operator = Operator(sandbox)
    operator.user.__class__ = Entitled
    return operator


@pytest.fixture
def secured(make_devserver):
    return make_devserver(arguments=["--token", "first-secret"])


def widgets_of(server):
    return server.api.resource("example.com/v1", "widgets", "default")


def secret_file(operator, text=SECRET, name="password"):
    path = operator.folder / name
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    operator.user.give(new, 0o600)
    new.replace(path)
    return path


def entry(name, handler, credentials, **options):
    return watch(name, handler, handler_options={"credentials": {key: str(path) for key, path in credentials.items()},
                                                 **options})


READ = 'cat "$RECONCILED_CREDENTIALS_DIRECTORY/password" >"$REQUEST.seen"; ls -A "$RECONCILED_CREDENTIALS_DIRECTORY" >"$REQUEST.list"'


def seen(request, kind="seen"):
    with open(f"{request.path}.{kind}", encoding="utf-8") as file:
        return file.read()


def test_a_handler_gets_its_credentials_and_nobody_else_sees_them(devserver, operator, widgets, handler):
    operator.configure(devserver, [entry("widgets", handler, {"password": secret_file(operator)})])
    operator.start_ready()
    handler.behave(READ)
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    assert seen(request) == SECRET and seen(request, "list") == "password\n"
    assert request.exit_code == 0
    folder = request.environment["RECONCILED_CREDENTIALS_DIRECTORY"]
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{folder}/password").st_mode) == 0o400
    assert os.path.ismount("/dev/shm") is False or folder.startswith("/dev/shm/")
    operator.wait_for_log("credentials not separated: handlers of watch widgets have credentials of their own")
    assert not operator.logs(lambda record: SECRET in record["message"])
    operator.stop()
    assert not os.path.exists(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
@pytest.mark.parametrize("inherited", [False, True], ids=["", "with-a-default-list"])
def test_handlers_of_other_users_cannot_read_each_others_credentials(devserver, entitled, widgets, sandbox, handler, inherited):
    one, other = sandbox.user(), sandbox.user()
    if inherited:  # what is made in there gets the list, with a mask that our own rights for the other user must not widen
        entitled.runtime_directory.chmod(0o711)
        write_list(entitled.runtime_directory, USER, one.uid, 7, "default")
    path = secret_file(entitled)
    first = entry("first", handler, {"password": path}, user=f"{one.uid}:{one.uid}")
    second = entry("second", handler, {"password": path}, user=f"{other.uid}:{other.uid}")
    second["namespaces"], first["namespaces"], second["id"] = ["other"], ["default"], "second"
    entitled.configure(devserver, [first, second])
    entitled.start_ready()
    handler.behave(READ + '''
for each in "$RECONCILED_CREDENTIALS_DIRECTORY"/../*/password; do cat "$each" >/dev/null 2>&1 && echo "$each"; done \\
    >"$REQUEST.readable"
for each in first second; do cat "$RECONCILED_CREDENTIALS_DIRECTORY/../$each/password" && echo "$each"; done \\
    >"$REQUEST.named" 2>/dev/null
echo more >>"$RECONCILED_CREDENTIALS_DIRECTORY/password"; echo x >"$RECONCILED_CREDENTIALS_DIRECTORY/x"
ls -A "$RECONCILED_CREDENTIALS_DIRECTORY" >"$REQUEST.list"; id -u >"$REQUEST.user"; exit 0''')
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    assert seen(request, "user") == f"{one.uid}\n"
    assert seen(request) == SECRET and seen(request, "list") == "password\n"
    assert seen(request, "named") == f"{SECRET}first\n" and seen(request, "readable") == ""
    folder = request.environment["RECONCILED_CREDENTIALS_DIRECTORY"]
    with open(f"{folder}/password", encoding="utf-8") as file:
        assert file.read() == SECRET
    assert not entitled.logs(lambda record: "not separated" in record["message"])


def test_a_changed_source_file_is_copied_at_a_reload(devserver, operator, widgets, handler):
    path = secret_file(operator)
    operator.configure(devserver, [entry("widgets", handler, {"password": path})])
    operator.start_ready()
    handler.behave(READ)
    widgets.create("a", spec={})
    folder = handler.wait_finished(name="a").environment["RECONCILED_CREDENTIALS_DIRECTORY"]
    secret_file(operator, "another")

    def copied():
        with open(f"{folder}/password", encoding="utf-8") as file:
            return file.read() == "another"

    operator.reload()
    wait_until(copied, "the new content in the handler's folder")
    widgets.create("b", spec={})
    assert seen(handler.wait_finished(name="b")) == "another"


def test_a_source_file_that_is_lost_leaves_the_copy_in_use_and_is_told(secured, operator, handler):
    path = secret_file(operator)
    token = secret_file(operator, "first-secret", "token")
    operator.configure(secured, [entry("widgets", handler, {"password": path})])
    kubeconfig = yaml.safe_load((operator.folder / "kubeconfig").read_text())
    kubeconfig["users"][0]["user"] = {"tokenFile": str(token)}
    (operator.folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    operator.start_ready().wait_synced()
    handler.behave(READ)
    path.unlink()
    # The operator looks at its files when it is refused, and not only once a minute.
    secured.set_token("second-secret")
    secret_file(operator, "second-secret", "token")
    secured.close_watches("cut")
    operator.wait_for_log(f"handler.credentials.password: {path} cannot be read", where=lambda record: record["level"] == "warning")
    assert operator.ctl.status()["watches"][0]["accessTrouble"]
    secret_file(operator, "again")
    widgets_of(secured).create("a", spec={})
    assert seen(handler.wait_finished(name="a")) == SECRET
    secured.set_token("third-secret")
    secret_file(operator, "third-secret", "token")
    secured.close_watches("cut")
    operator.wait_for_log(message_id=MESSAGE_ID["ACCESS_RENEWED"])
    assert not operator.ctl.status()["watches"][0]["accessTrouble"]
    widgets_of(secured).create("b", spec={})
    assert seen(handler.wait_finished(name="b")) == "again"


def home_of(user, folder):
    """A folder that belongs to a handler's user, with a file of that user."""
    home = folder / "home"
    home.mkdir(0o755)
    (home / "password").write_text(SECRET, encoding="utf-8")
    for path in (home, home / "password"):
        os.chown(path, user.uid, user.uid)
    return home


def waits(operator):
    """Whether the only watch waits for credentials, as everybody is told."""
    status = operator.ctl.status()["watches"][0]
    assert status["accessAwaited"] == (status["state"] == "degraded"), status
    assert not status["accessAwaited"] or abs(time.time() - status["degradedSince"] / 1e6) < 3600, status
    return status["accessAwaited"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
@pytest.mark.parametrize("way", ["link", "link-in-a-folder-of-root", "folder", "kubeconfig"])
def test_a_handler_chooses_no_file_of_the_operator(devserver, entitled, sandbox, handler, widgets, way):
    one = sandbox.user()
    home, secret = home_of(one, entitled.folder), secret_file(entitled, name="secret")
    path = home / "link"
    path.symlink_to(secret)
    if way == "folder":
        secret.rename(home / "secret")
        path = home / "secret"
    elif way == "link-in-a-folder-of-root":
        (entitled.folder / "mine").symlink_to(path)
        path = entitled.folder / "mine"
    options = {"credentials": {"password": str(path)}}
    if way == "kubeconfig":  # it names files
        path = home / "kubeconfig"
        kubeconfig = yaml.safe_load(entitled.kubeconfig_for(devserver).read_text())
        kubeconfig["users"] = [{"name": kubeconfig["contexts"][0]["context"]["user"], "user": {"tokenFile": str(secret)}}]
        path.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
        options = {"kubernetes": {"kubeconfig": str(path)}}
    entitled.configure(devserver, [watch("widgets", handler, handler_options={"user": f"{one.uid}:{one.uid}"})])
    entitled.start_ready()
    entitled.configure(devserver, [watch("widgets", handler, handler_options={"user": f"{one.uid}:{one.uid}", **options})])
    entitled.reload()
    if way == "kubeconfig":  # of which a handler's user never has one
        entitled.wait_for_log(f"{home} belongs to the user {one.uid}", where=lambda record: record["level"] == "error")
        entitled.wait_for_log("the new configuration is rejected")
        entitled.stop()
        entitled.start()
        assert entitled.wait_exit() == 78
        return
    widgets.create("a", spec={})
    for again in (False, True):
        entitled.wait_for_log(f"{home} belongs to the user {one.uid}", message_id=MESSAGE_ID["WATCH_DEGRADED"])
        assert waits(entitled) and not handler.requests()
        if not again:
            entitled.stop()
            entitled.start_ready()


LEASE = """
import fcntl, signal, sys
def take():
    while True:
        try:
            return fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            pass
def take_again(*_):  # else the kernel ends it after a while
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    take()
file = open(sys.argv[1], "r+")
signal.signal(signal.SIGIO, take_again)
take()
print("leased", flush=True)
while True:
    signal.pause()
"""


@contextlib.contextmanager
def spoilt(path, how, user, server):
    """The user makes of its own file what cannot be copied, and afterwards gives it back."""
    holder = None
    if how == "lease":
        holder = subprocess.Popen(["/usr/bin/python3", "-c", LEASE, path], user=user.uid, group=user.uid, extra_groups=[],
                                  stdout=subprocess.PIPE)
        assert holder.stdout.readline() == b"leased\n"
    elif how == "operators-own":
        path.write_text(yaml.safe_dump({
            "clusters": [{"name": "c", "cluster": {"server": server.url}}], "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "users": [{"name": "c", "user": {}}]}))
    elif how == "sparse":
        os.truncate(path, 1 << 40)
    else:
        path.unlink()
        if how == "fifo":
            os.mkfifo(path)
        elif how == "folder":
            path.mkdir()
        elif how == "link":
            path.symlink_to("/dev/zero")
        if how != "removed":
            os.chown(path, user.uid, user.uid, follow_symlinks=False)
    yield
    if holder:
        holder.kill()
        holder.wait()
        holder.stdout.close()
        return
    if how == "folder":
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_text(SECRET, encoding="utf-8")
    os.chown(path, user.uid, user.uid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
@pytest.mark.parametrize("how", ["removed", "fifo", "folder", "link", "sparse", "lease", "operators-own"])
def test_a_source_that_its_handlers_user_spoils_holds_up_that_watch_alone(devserver, entitled, sandbox, make_handler, how):
    user, handler, other = sandbox.user(), make_handler(), make_handler()
    path = home_of(user, sandbox.subfolder("open", mode=0o755)) / "password"
    first = {**entry("first", handler, {"password": path}, user=f"{user.uid}:{user.uid}"), "namespaces": ["default"]}
    second = {**watch("second", other), "namespaces": ["other"], "id": "second"}
    mine, others = (devserver.api.resource("example.com/v1", "widgets", name) for name in ("default", "other"))
    devserver.api.resource("v1", "namespaces").create("other")
    handler.behave(READ)
    socket = entitled.runtime_directory / "gateway.sock"
    gateway, more = Gateway(socket), {"gateway": {"listen": f"unix:{socket}"}}
    entitled.configure(devserver, [first, second], **more)
    entitled.start_ready()
    mine.create("before", spec={})
    handler.wait_finished(name="before")
    with spoilt(path, how, user, devserver):
        entitled.configure(devserver, [{**first, "resync": "1h"}, second], **more)
        entitled.reload()
        mine.create("mine", spec={})
        for name in ("reloaded", "started"):
            told = entitled.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])["message"]
            assert "watch first" in told and str(path) in told
            others.create(name, spec={})
            other.wait_finished(name=name)
            assert waits(entitled)
            gateway.wait('reconciled_handler_access_failing{watch="first"}', 1)
            assert not handler.requests(name="mine")
            if name == "reloaded":
                entitled.stop()
                entitled.start_ready()
    entitled.reload()
    assert seen(handler.wait_finished(name="mine")) == SECRET
    entitled.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"])
    assert not waits(entitled)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
def test_a_source_that_others_can_remove_from_a_shared_folder(devserver, entitled, sandbox, handler, widgets):
    user = sandbox.user()
    folder = entitled.folder / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    entitled.configure(devserver, [entry("widgets", handler, {"password": folder / "password"}, user=f"{user.uid}:{user.uid}")])
    entitled.start_ready()
    widgets.create("a", spec={})
    entitled.wait_for_log("No such file or directory", message_id=MESSAGE_ID["WATCH_DEGRADED"])
    assert waits(entitled) and not handler.requests()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
@pytest.mark.parametrize("tag", [USER, OTHER_GROUP])
@pytest.mark.parametrize("way", ["folder", "folder-above", "kubeconfig"])
def test_a_list_of_rights_lets_nobody_choose_a_file_of_the_operator(devserver, entitled, sandbox, handler, way, tag):
    """All is root's here, and by its mode root's group alone may write it: the list makes these bits its mask."""
    one = sandbox.user()
    folder = entitled.folder / "shared"
    (folder / "below").mkdir(parents=True)
    path = folder / "below/password"
    path.write_text(SECRET, encoding="utf-8")
    options = {"credentials": {"password": str(path)}}
    opened = folder if way == "folder-above" else path.parent
    if way == "kubeconfig":  # it names files
        opened = path.parent / "kubeconfig"
        kubeconfig = yaml.safe_load(entitled.kubeconfig_for(devserver).read_text())
        kubeconfig["users"] = [{"name": kubeconfig["contexts"][0]["context"]["user"], "user": {"token": "of-another-account"}}]
        opened.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
        options = {"kubernetes": {"kubeconfig": str(opened)}}
    opened.chmod(0o664 if opened.is_file() else 0o775)
    entitled.configure(devserver, [watch("widgets", handler, handler_options={"user": f"{one.uid}:{one.uid}", **options})])
    entitled.start_ready().stop()
    write_list(opened, tag, one.uid, 6 if opened.is_file() else 7)
    if way == "kubeconfig":
        entitled.start().wait_exit(78)
    else:
        entitled.start_ready().wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])
        assert waits(entitled)
    output = entitled.output.text()
    assert f"{opened} " in output and "may be written by others" in output, output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
def test_a_list_that_opens_a_folder_later(devserver, entitled, sandbox, handler, widgets):
    """Looked at anew each time that the file is read."""
    one = sandbox.user()
    folder = entitled.folder / "shared"
    folder.mkdir(0o755)
    path, secret = folder / "password", secret_file(entitled, "for the operator", "secret")
    path.write_text(SECRET, encoding="utf-8")
    entitled.configure(devserver, [entry("widgets", handler, {"password": path}, user=f"{one.uid}:{one.uid}")])
    entitled.start_ready().wait_synced()
    handler.behave(READ)
    write_list(folder, USER, one.uid, 7)
    path.unlink()
    path.symlink_to(secret)
    entitled.reload()
    entitled.wait_for_log(f"{folder} may be written by others")
    widgets.create("a", spec={})
    assert seen(handler.wait_finished(name="a")) == SECRET


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")
def test_a_handlers_own_file_is_not_replaced_by_one_of_the_operator(secured, entitled, sandbox, handler):
    one = sandbox.user()
    home = home_of(one, entitled.folder)
    token = secret_file(entitled, "first-secret", "token")
    entitled.configure(secured, [entry("widgets", handler, {"password": home / "password"}, user=f"{one.uid}:{one.uid}")])
    kubeconfig = yaml.safe_load((entitled.folder / "kubeconfig").read_text())
    kubeconfig["users"][0]["user"] = {"tokenFile": str(token)}
    (entitled.folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    entitled.start_ready().wait_synced()
    handler.behave(READ)
    (home / "password").unlink()
    (home / "password").symlink_to(token)
    # The operator looks at its files when it is refused.
    secured.set_token("second-secret")
    secret_file(entitled, "second-secret", "token")
    secured.close_watches("cut")
    entitled.wait_for_log(f"{home} belongs to the user {one.uid}", where=lambda record: record["level"] == "warning")
    widgets_of(secured).create("a", spec={})
    assert seen(handler.wait_finished(name="a")) == SECRET


def test_what_a_killed_operator_has_left_is_taken_away_at_the_next_start(devserver, operator, widgets, handler):
    operator.configure(devserver, [entry("widgets", handler, {"password": secret_file(operator)})])
    operator.start_ready()
    handler.behave(READ)
    widgets.create("a", spec={})
    folder = handler.wait_finished(name="a").environment["RECONCILED_CREDENTIALS_DIRECTORY"]
    os.kill(operator.pid, signal.SIGKILL)
    assert operator.wait_exit() == -signal.SIGKILL
    assert os.path.exists(f"{folder}/password")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready()
    assert not os.path.exists(folder)


def test_a_path_may_name_a_credential_of_the_unit_or_a_file_beside_the_configuration(devserver, operator, widgets, handler):
    operator.environment["CREDENTIALS_DIRECTORY"] = str(operator.folder)
    secret_file(operator)
    operator.configure(devserver, [entry("widgets", handler, {"password": "${CREDENTIALS_DIRECTORY}/password",
                                                              "other": "./password"})])
    operator.start_ready()
    handler.behave(READ + '; cat "$RECONCILED_CREDENTIALS_DIRECTORY/other" >"$REQUEST.other"')
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    assert seen(request) == seen(request, "other") == SECRET


WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, "spec": {}}


def test_a_handler_that_is_run_by_hand_is_given_the_same(devserver, operator, handler, by_hand):
    handler.behave(READ + '; env >"$REQUEST.env"; cp "$RECONCILED_CREDENTIALS_DIRECTORY/token" "$REQUEST.token"')
    operator.configure(devserver, [watch("widgets", handler, handler_options={
        "environment": {"REGION": "north"}, "credentials": {"password": str(secret_file(operator))},
        "kubernetes": {"serviceAccount": "helper", "namespace": "elsewhere"}})])
    path = by_hand.folder / "object.yaml"
    path.write_text(yaml.safe_dump(WIDGET), encoding="utf-8")
    operator.user.give(path)
    by_hand("run", "--object", path)
    request = handler.wait_finished(name="w")
    folder = request.environment["RECONCILED_CREDENTIALS_DIRECTORY"]
    assert seen(request) == SECRET and request.environment["REGION"] == "north"
    assert request.environment["KUBECONFIG"] == f"{folder}/kubeconfig" and seen(request, "token")
    assert not os.path.exists(folder)


def test_a_run_by_hand_says_why_there_is_no_token(devserver, operator, handler, by_hand, widgets):
    operator.configure(devserver, [watch("widgets", handler, handler_options={
        "kubernetes": {"serviceAccount": "missing", "namespace": "default"}})])
    widgets.create("w", spec={})
    tried = by_hand("run", "--object", "default/w", expect=77)
    assert 'cannot get a token for service account default/missing' in tried.stderr
    assert not handler.requests()


def test_another_credential_in_the_configuration_is_there_after_a_reload(devserver, operator, widgets, handler):
    path = secret_file(operator)
    operator.configure(devserver, [entry("widgets", handler, {"password": path})])
    operator.start_ready()
    other = secret_file(operator, "other", "other")
    operator.write_config(operator.config_file.read_text().replace(str(path), str(other)))
    operator.reload()
    handler.behave(READ)
    widgets.create("a", spec={})
    assert seen(handler.wait_finished(name="a")) == "other"


@pytest.mark.parametrize("name, path, complaint", [
    ("password", "/nowhere/password", "No such file or directory"),
    ("password", "relative", "is not a path: a path begins with /"),
    ("password", "/etc", "is not a regular file"),
    ("password", "${NOT_THERE}/password", "the environment has no variable NOT_THERE"),
    ("a/b", "/etc/hostname", "is not a name of a credential"),
    (".hidden", "/etc/hostname", "is not a name of a credential"),
])
def test_a_mistake_in_the_credentials_is_told_with_its_place(devserver, operator, handler, name, path, complaint):
    operator.configure(devserver, [entry("widgets", handler, {name: path})])
    operator.start()
    assert operator.wait_exit() == 78
    wanted = f"watches[0].handler.credentials.{name}: "
    assert operator.logs(lambda record: wanted in record["message"] and complaint in record["message"]
                         and f"{operator.config_file}:" in record["message"])


def test_a_kubeconfig_is_given_whole_to_the_handler_that_names_it(secured, operator, handler):
    own = operator.kubeconfig_for(secured).read_text()
    kubeconfig = secret_file(operator, own.replace("first-secret", "of-the-handler"), "handlers-kubeconfig")
    operator.configure(secured, [watch("widgets", handler, handler_options={"kubernetes": {"kubeconfig": str(kubeconfig)}})])
    operator.start_ready()
    handler.behave('cat "$KUBECONFIG" >"$REQUEST.seen"; cat "$RECONCILED_CREDENTIALS_DIRECTORY/token" >"$REQUEST.token"; exit 0')
    widgets_of(secured).create("a", spec={})
    request = handler.wait_finished(name="a")
    given, original = yaml.safe_load(seen(request)), yaml.safe_load(kubeconfig.read_text())
    assert given["clusters"][0]["cluster"]["server"] == original["clusters"][0]["cluster"]["server"]
    assert request.environment["KUBECONFIG"] == request.environment["RECONCILED_CREDENTIALS_DIRECTORY"] + "/kubeconfig"
    assert given["users"][0]["user"]["tokenFile"] == request.environment["RECONCILED_CREDENTIALS_DIRECTORY"] + "/token"
    assert seen(request, "token") == original["users"][0]["user"]["token"]


def test_a_broken_kubeconfig_is_found_before_a_reload_takes_it(secured, operator, handler):
    operator.configure(secured, [watch("widgets", handler)])
    operator.start_ready()
    text = operator.config_file.read_text()
    broken = secret_file(operator, "users: [", "broken")
    config = yaml.safe_load(text)
    config["watches"][0]["handler"]["kubernetes"] = {"kubeconfig": str(broken)}
    operator.write_config(yaml.safe_dump(config))
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log(f"watches[0].handler.kubernetes.kubeconfig: {broken}")
    operator.wait_for_log("the new configuration is rejected")
    widgets_of(secured).create("a", spec={})
    assert "KUBECONFIG" not in handler.wait_finished(name="a").environment
    asks = secret_file(operator, yaml.safe_dump({
        "clusters": [{"name": "c", "cluster": {"server": secured.url}}], "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true",
                                                  "interactiveMode": "Never"}}}]}), "asks")
    config["watches"][0]["handler"]["kubernetes"] = {"kubeconfig": str(asks)}
    checked = operator.ctl.check(operator.write_config(yaml.safe_dump(config)))
    assert checked.returncode == 78 and "asks a plugin (exec)" in checked.stdout
