# SPDX-License-Identifier: Apache-2.0
"""Straight-line expressions as C: an extension module, or portable C99."""
