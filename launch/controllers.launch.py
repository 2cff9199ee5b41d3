# SPDX-License-Identifier: Apache-2.0
"""
Part of the other launch files: reads the parameters of the ros2_control controllers.

Sets the launch configurations ``expanded_controllers_file``, with $(var tf_prefix) and its like
put in, and ``joints``, a YAML list in the order in which the controller takes its commands.
"""

import yaml
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction, SetLaunchConfiguration
from launch_ros.parameter_descriptions import ParameterFile

from robodyn_ros.ros.launching import argument, at_shutdown

ARGUMENTS = (argument('tf_prefix'), argument('controller'), argument('controllers_file'))


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the action that reads the file."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=expanded)])


def expanded(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the actions that set the two configurations and tidy up."""
    values = context.launch_configurations
    if not values['controllers_file']:
        return [
            SetLaunchConfiguration('expanded_controllers_file', ''),
            SetLaunchConfiguration('joints', ''),
        ]
    controllers = ParameterFile(values['controllers_file'], allow_substs=True)
    path = controllers.evaluate(context)
    with open(path, encoding='utf-8') as file:
        joints = joints_of(yaml.safe_load(file), values['controller'])
    return [
        SetLaunchConfiguration('expanded_controllers_file', str(path)),
        SetLaunchConfiguration('joints', yaml.safe_dump(joints)),
        at_shutdown(controllers.cleanup),
    ]


def joints_of(sections: dict, controller: str) -> list[str]:
    """Return the joints of a controller, in the order in which it takes its commands."""
    nested = sections.get('/**') or {}
    for name, section in [*sections.items(), *nested.items()]:
        if name.rpartition('/')[2] == controller and section:
            return section['ros__parameters']['joints']
    raise RuntimeError(f'controllers_file: nothing about the joints of {controller} in it')
