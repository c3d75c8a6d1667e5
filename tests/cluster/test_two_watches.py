# SPDX-License-Identifier: Apache-2.0
"""Two watches of one kind on a real server: what holds on the devserver (tests/integration) holds here."""
import pytest

from harness import twins as scenario
from harness.twins import Twins


@pytest.mark.parametrize("name", ["both_clean_up_one_object", "each_keeps_its_own_children", "it_moves_from_one_to_the_other",
                                  "a_lost_list_of_one_does_not_cost_the_other"])
def test_two_watches(cluster, operator, make_handler, widgets, name):
    getattr(scenario, name)(Twins(cluster, operator, make_handler, widgets))
