# SPDX-License-Identifier: Apache-2.0
"""A process that sends the stop command when the dynamics node no longer can."""
