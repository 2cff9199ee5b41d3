# SPDX-License-Identifier: Apache-2.0
"""The node ``feedforward``: the model in the effort of trajectories, for their controller."""
