# SPDX-License-Identifier: Apache-2.0
"""Chaos, for half a minute, on the newest API server there is, and with three replicas for a minute; hours, and other seeds:
tests/chaos/run --cluster, tests/chaos/run --replicas."""
import os

import pytest

from chaos.driver import Chaos
from chaos.replicas import Replicas
from harness import scaled
from harness.cluster import servers

# One whose first restarts are a SIGKILL and a SIGTERM, both after a compaction.
SEED = int(os.environ.get("RECONCILED_CHAOS_SEED", "3831"))
SECONDS = float(os.environ.get("RECONCILED_CHAOS_SECONDS", "35"))


@pytest.mark.long
def test_everything_comes_right_on_a_real_server(sandbox):
    chaos = Chaos(sandbox, SEED, servers()[-1], say=print).run(SECONDS)
    count = chaos.count
    assert count["create"] > 30 and count["start"] > 1 and count["compact"] and count["restart"], chaos.figures()


@pytest.mark.long
def test_everything_comes_right_with_three_replicas(sandbox):
    chaos = Replicas(sandbox, SEED, servers()[-1], say=print).run(scaled(float(os.environ.get("RECONCILED_CHAOS_SECONDS", "60"))))
    assert chaos.notes.leads > 3 and chaos.count["create"] > 30 and len(chaos.gone) > 10, chaos.figures()
