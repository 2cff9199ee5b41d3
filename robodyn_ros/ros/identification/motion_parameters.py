# SPDX-License-Identifier: Apache-2.0
"""The parameters of ``motion_node``, all read once."""

from __future__ import annotations

from robodyn_ros.ros.given_parameters import read_once

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


PARAMETERS = (
    read_once('motion_file', 'string', '', 'CSV file of the motion, from robodyn excite.'),
    read_once(
        'confirm', 'bool', False, 'true: the way is clear, the arm may move. Else nothing is.'
    ),
    read_once('urdf_file', 'string', '', 'Path of the URDF; empty: the topic robot_description.'),
    read_once('base_link', 'string', '', 'Link that the chain begins at; empty: the root.'),
    read_once('tip_link', 'string', '', 'Link that the chain ends at; empty: found in the URDF.'),
    read_once('target', 'string', 'dynamics_node', f'Who takes the motion: {", ".join(TARGETS)}.'),
    read_once(
        'approach', 'bool', False, 'Go to its start in a straight line of joint space before.'
    ),
    read_once('start_tolerance', 'double', 0.05, 'From its start, without approach [rad or m].'),
    read_once(
        'rehearsal_speed', 'double', 0.25, 'Part of the speed to make it at first; 0: never.'
    ),
    read_once('speed', 'double', 1.0, 'Part of its speed to make it at.'),
    read_once('bag', 'string', '', 'Folder of the bag, to be made; empty: nothing is recorded.'),
    read_once('storage', 'string', 'sqlite3', 'Of the bag: sqlite3 or mcap.'),
    read_once('effort_scale', 'double[]', [1.0], 'Torque for a unit of the measured effort.'),
    read_once(
        'effort_tolerance',
        'double[]',
        None,
        'How far efforts may be from the prediction [N m or N]; not set: 40 % of their limits.',
    ),
    read_once(
        'position_tolerance', 'double', 0.2, 'How far the arm may be from the motion [rad or m].'
    ),
    read_once(
        'state_timeout', 'double', 0.5, 'Without joint states, after which it is stopped [s].'
    ),
)
