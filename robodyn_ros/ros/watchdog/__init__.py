# SPDX-License-Identifier: Apache-2.0
"""A process that has the stop command sent when the dynamics node no longer can."""
