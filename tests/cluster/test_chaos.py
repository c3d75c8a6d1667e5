# SPDX-License-Identifier: Apache-2.0
"""Chaos, for half a minute, on the newest API server there is; hours, and other seeds: tests/chaos/run --cluster."""
import os

import pytest

from chaos.driver import Chaos
from harness.cluster import servers

# One whose first restarts are a SIGKILL and a SIGTERM, both after a compaction.
SEED = int(os.environ.get("RECONCILED_CHAOS_SEED", "3831"))
SECONDS = float(os.environ.get("RECONCILED_CHAOS_SECONDS", "35"))


@pytest.mark.long
def test_everything_comes_right_on_a_real_server(sandbox):
    chaos = Chaos(sandbox, SEED, servers()[-1], say=print).run(SECONDS)
    count = chaos.count
    assert count["create"] > 30 and count["start"] > 1 and count["compact"] and count["restart"], chaos.figures()
