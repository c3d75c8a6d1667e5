# SPDX-License-Identifier: Apache-2.0
"""State folders that former releases left behind, and what the programs of today make of them."""
