# SPDX-License-Identifier: Apache-2.0
"""The real cluster as the tests of this folder use it: one for all of them, a namespace for each."""
import itertools

import pytest

from harness import WIDGET_CRD, wait_until, watch

_number = itertools.count(1)


@pytest.fixture
def widget_crd(cluster):
    """For each test: the files of this folder do not all have the same cluster."""
    crds = cluster.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    if not crds.exists("widgets.example.com"):
        crds.create(body=WIDGET_CRD)
    everywhere = cluster.api.resource("example.com/v1", "widgets")
    wait_until(lambda: cluster.api.raw("GET", everywhere.path).code == 200, "the Widget resource to be served")


@pytest.fixture
def namespace(cluster, widget_crd):
    name = f"event-{next(_number)}"
    cluster.api.resource("v1", "namespaces").create(name)
    return name


@pytest.fixture
def widgets(cluster, namespace):
    return cluster.api.resource("example.com/v1", "widgets", namespace)


@pytest.fixture
def configured(cluster, operator, handler, namespace):
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace])])
    return operator
