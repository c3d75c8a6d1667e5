# SPDX-License-Identifier: Apache-2.0
"""State folders in which all is pending that may be, and how the programs go on with them."""
