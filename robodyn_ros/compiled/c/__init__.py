# SPDX-License-Identifier: Apache-2.0
"""Straight-line expressions as C: a library that Python calls, or portable C99."""
