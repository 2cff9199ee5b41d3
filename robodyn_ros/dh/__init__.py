# SPDX-License-Identifier: Apache-2.0
"""Denavit-Hartenberg tables: from joint axes, as frames, as text."""
