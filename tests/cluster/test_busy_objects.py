# SPDX-License-Identifier: Apache-2.0
"""Objects that others write to, on a real API server: a run makes what it answers, is done once, and forgets no child."""
import pytest

from harness import watch
from harness.busy import (change_while_the_handler_runs, finalize_in_spite_of_heartbeats,
                          others_are_left_alone_when_the_record_is_lost, pruned_though_the_record_is_lost,
                          released_only_when_lost_children_are_gone, run_in_spite_of_heartbeats, shortened)


@pytest.fixture
def start(cluster, operator, handler, namespace):
    def start(**more):
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], **more)])
        operator.start_ready().wait_synced()
        return operator

    return start


@pytest.fixture
def config_maps(cluster, namespace):
    return cluster.api.resource("v1", "configmaps", namespace)


def test_a_run_in_spite_of_heartbeats(start, handler, widgets, config_maps):
    run_in_spite_of_heartbeats(start, handler, widgets, config_maps)


def test_finalize_in_spite_of_heartbeats(start, handler, widgets, config_maps):
    finalize_in_spite_of_heartbeats(start, handler, widgets, config_maps)


def test_a_change_among_heartbeats_is_not_hidden(start, handler, widgets, config_maps):
    change_while_the_handler_runs(start, handler, widgets, config_maps)


@pytest.fixture
def elsewhere(cluster, namespace):
    cluster.api.resource("v1", "namespaces").create(f"{namespace}-other")
    return cluster.api.resource("v1", "configmaps", f"{namespace}-other")


@pytest.mark.parametrize("scenario", [pruned_though_the_record_is_lost, released_only_when_lost_children_are_gone,
                                      others_are_left_alone_when_the_record_is_lost])
def test_the_record_is_lost(start, handler, widgets, elsewhere, scenario):
    scenario(start, handler, widgets, elsewhere)


def test_the_record_is_shortened(start, handler, widgets, elsewhere):
    pruned_though_the_record_is_lost(start, handler, widgets, elsewhere, shortened)
