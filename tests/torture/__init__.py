# SPDX-License-Identifier: Apache-2.0
"""The Nth call fails: docs/reliability.md."""
