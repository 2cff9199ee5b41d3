# SPDX-License-Identifier: Apache-2.0
"""The node ``feedforward``: feedforward efforts in trajectories, for their controller."""
