# SPDX-License-Identifier: Apache-2.0
"""Random changes of objects while processes die, restart and meet faults: docs/reliability.md."""
