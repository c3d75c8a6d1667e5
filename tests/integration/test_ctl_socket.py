# SPDX-License-Identifier: Apache-2.0
"""The control socket: one operator has it, a probe gets through, and nobody waits for ever."""
import os
import signal
import socket
import subprocess

import pytest

from harness import Operator, wait_until, watch
from harness.process import clean_environment
from harness.wait import scaled


@pytest.fixture
def running(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)], workers=1)
    return operator.start_ready()


def test_a_second_operator_does_not_take_the_socket_over(devserver, sandbox, running, handler):
    second = Operator(sandbox)
    second.configure(devserver, [watch("others", handler)], workers=1, operator="second.example.com")
    second.runtime_directory = running.runtime_directory
    second.user = running.user
    for path in (second.folder, second.config_file, second.folder / "kubeconfig", second.state_directory):
        running.user.give(path, 0o700)
    second.start()
    assert second.wait_exit() == 78
    wait_until(lambda: f"another instance (pid {running.pid}) uses {running.runtime_directory}" in second.output.text(),
               lambda: f"who has it: {second.output.text()}")
    assert "a runtime directory of its own" in second.output.text()
    assert running.ctl.status()["pid"] == running.pid, "the first one still answers"
    running.stop()
    second.start()
    wait_until(lambda: second.ctl.run("status", "--json").returncode == 0, "the socket of the second one, once it is free")
    assert second.ctl.status()["operator"] == "second.example.com"


def connections(operator, count):
    def connect():
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.setblocking(False)
        try:
            peer.connect(str(operator.runtime_directory / "control.sock"))
        except BlockingIOError:
            peer.close()
            return None
        return peer

    return [peer for peer in (connect() for _ in range(count)) if peer]


def test_health_gets_through_beside_idle_connections(running):
    peers = connections(running, 16)
    assert len(peers) == 16
    for _ in range(20):
        healthy = running.ctl.run("health")
        assert (healthy.returncode, healthy.stderr) == (0, "")
    for peer in peers:
        peer.close()


@pytest.mark.slow
def test_a_stopped_operator_keeps_nobody_waiting(running):
    os.kill(running.pid, signal.SIGSTOP)
    try:
        peers = connections(running, 64)
        assert 0 < len(peers) < 64, "the queue of connections is full"
        command = [running.sandbox.program("reconciledctl"), "--runtime-directory", running.runtime_directory, "health"]
        asked = subprocess.Popen(running.user.command(command), env=clean_environment(running.user),
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=running.sandbox.folder)
        try:
            _, said = asked.communicate(timeout=scaled(60))
        except subprocess.TimeoutExpired:
            asked.kill()
            asked.wait()
            pytest.fail("it waits for an operator that takes no connection")
        assert (asked.returncode, "does not answer" in said) == (70, True), said
    finally:
        os.kill(running.pid, signal.SIGCONT)
        for peer in peers:
            peer.close()
