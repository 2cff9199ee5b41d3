# SPDX-License-Identifier: Apache-2.0
"""The parameters of ``motion_node``, all read once."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.msg import ParameterDescriptor

from robodyn_ros.ros.given_parameters import GivenParameter

TARGETS = {
    'dynamics_node': 'dynamics_node/joint_trajectory',
    'joint_trajectory_controller': 'joint_trajectory_controller/joint_trajectory',
}
"""What the motion may be sent to, and the topic that it takes trajectories on."""

ABOUT = (
    'Runs a motion from robodyn excite on an arm, slowly first, and records joint states with '
    'efforts into a bag for robodyn identify. It stops where the arm or its efforts leave what '
    'is expected.'
)


def _row(name: str, kind: str, default: Any, description: str) -> GivenParameter:
    """Return a parameter that is read once."""
    return GivenParameter(name, kind, default, description, ParameterDescriptor(read_only=True))


PARAMETERS = (
    _row('motion_file', 'string', '', 'CSV file of the motion, from robodyn excite.'),
    _row('confirm', 'bool', False, 'true: the way is clear, the arm may move. Else nothing is.'),
    _row('urdf_file', 'string', '', 'Path of the URDF; empty: the topic robot_description.'),
    _row('base_link', 'string', '', 'Link that the chain begins at; empty: the root.'),
    _row('tip_link', 'string', '', 'Link that the chain ends at; empty: found in the URDF.'),
    _row('target', 'string', 'dynamics_node', f'Who takes the motion: {", ".join(TARGETS)}.'),
    _row('approach', 'bool', False, 'Go to its start in a straight line of joint space before.'),
    _row('start_tolerance', 'double', 0.05, 'From its start, without approach [rad or m].'),
    _row('rehearsal_speed', 'double', 0.25, 'Part of the speed to make it at first; 0: never.'),
    _row('speed', 'double', 1.0, 'Part of its speed to make it at.'),
    _row('bag', 'string', '', 'Folder of the bag, to be made; empty: nothing is recorded.'),
    _row('storage', 'string', 'sqlite3', 'Of the bag: sqlite3 or mcap.'),
    _row('effort_scale', 'double[]', [1.0], 'Torque for a unit of the measured effort.'),
    _row(
        'effort_tolerance',
        'double[]',
        None,
        'How far efforts may be from the prediction [N m or N]; not set: 40 % of their limits.',
    ),
    _row(
        'position_tolerance', 'double', 0.2, 'How far the arm may be from the motion [rad or m].'
    ),
    _row('state_timeout', 'double', 0.5, 'Without joint states, after which it is stopped [s].'),
)
