# SPDX-License-Identifier: Apache-2.0
"""The demonstration: both nodes, and what is measured of them."""
