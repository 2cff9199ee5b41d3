# SPDX-License-Identifier: Apache-2.0
"""The services of the dynamics node, answered by a process of their own."""
