# SPDX-License-Identifier: Apache-2.0
"""What only the kit for Node has: promises, answers that are no JSON, and names of functions."""
import subprocess

import pytest

import kits
from test_expectations import ask_for

ONLY_NODE = pytest.mark.parametrize("kit", [kits.parameter("node")], indirect=True)


@ONLY_NODE
@pytest.mark.parametrize("do, error", [
    ("bigint", "TypeError: Do not know how to serialize a BigInt"), ("nan", "TypeError: an answer cannot have NaN (size)"),
    ("list", "TypeError: reconcile() returned [1], and not an object or nothing"),
    ("textless", "what the handler threw has no text"), ("later", "what the handler threw has no text")])
def test_what_is_no_answer(probe, do, error):
    assert probe.ask(ask_for(do)) == {"id": 1, "error": error}
    assert probe.ask(ask_for("reject")) == {"id": 1, "error": "rejected", "permanent": True}, "it lives on"


@ONLY_NODE
@pytest.mark.parametrize("handlers, error", [("{}", "the handler lacks the function reconcile"), ("{finalize() {}, startup() {}}", "the handler lacks the function reconcile"),
                                             ("{schedules: {nightly: 1}}", "the handler's nightly is no function"),
                                             ("{reconcile() {}, finalise() {}}", "there is no action finalise")])
def test_mistakes_that_are_found_at_the_start(kit, handlers, error):
    done = subprocess.run([kit.probe[0], "-e", f"require('reconciled').serve({handlers})"], cwd=kit.folder, capture_output=True, text=True,
                          env={**kits.ENVIRONMENT, **kit.environment}, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1 and f"TypeError: {error}" in done.stderr
