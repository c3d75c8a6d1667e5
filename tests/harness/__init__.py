# SPDX-License-Identifier: Apache-2.0
"""What the integration tests stand on: real processes, real sockets, a real (or in-memory) API server.

A test asks for fixtures (see tests/conftest.py) and needs little else:

    def test_object_reaches_the_handler(devserver, operator, handler, widgets):
        operator.configure(devserver, watches=[watch("widgets", handler)])
        operator.start()
        operator.wait_ready()
        widgets.create("first", spec={"size": 1})
        request = handler.wait_for(name="first")
        assert request.body["action"] == "reconcile"

Fixtures
    sandbox       a folder that every user can enter, and the register of what the test started. At the end of
                  the test everything is stopped; whatever is still alive after that is killed and fails the test.
    devserver     a running reconciled-devserver with the Widget resource (WIDGET_CRD) loaded
    api           an Api for it
    widgets       api.resource("example.com/v1", "widgets", "default")
    operator      an Operator, not configured and not started, on an unprivileged user of its own
    handler       a Handler that records each request and answers what the test tells it
    make_operator, make_handler, make_devserver
                  the same as functions, for tests that want several or other options

Rules: no test sleeps; it waits for something it can see, with wait_until() or one of the wait_ methods, whose
deadlines are generous (they cost nothing when all is well) and follow the load, as the upper bounds of a configuration
do. A test that must wait for a bound, or that is about time or starvation, is marked `quiet`: it runs when the machine is.
"""
import yaml

from .api import Api, ApiError, Watch
from .ctl import Ctl
from .devserver import Devserver
from .handler import Handler
from .operator import Operator
from .process import Process, find_processes
from .sandbox import Sandbox
from .setup import WIDGET_CRD, watch
from .wait import Timeout, scaled, wait_until

# The same in C: YAML was a good part of what a test costs in Python.
yaml.SafeLoader, yaml.SafeDumper = yaml.CSafeLoader, yaml.CSafeDumper

__all__ = ["Api", "ApiError", "Ctl", "Devserver", "Handler", "Operator", "Process", "Sandbox", "Timeout", "WIDGET_CRD",
           "Watch", "find_processes", "scaled", "wait_until", "watch"]
