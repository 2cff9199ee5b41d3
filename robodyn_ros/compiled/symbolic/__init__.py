# SPDX-License-Identifier: Apache-2.0
"""The dynamics of one arm as straight-line expressions, counted and simplified."""
