# SPDX-License-Identifier: Apache-2.0
"""
Part of the other launch files: sets the launch configuration ``urdf_file``.

It is the path of the robot's URDF. A xacro is expanded into a temporary file, which is removed at
shutdown.
"""

import shlex
import shutil
import tempfile
from pathlib import Path

import xacro
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnShutdown

ARGUMENTS = (
    DeclareLaunchArgument(
        'description_file',
        default_value='',
        description='URDF or xacro of the robot; empty: the topic robot_description.',
    ),
    DeclareLaunchArgument(
        'description_arguments',
        default_value='',
        description='Further arguments of the xacro, as on its command line: "name:=value ...".',
    ),
    DeclareLaunchArgument(
        'tf_prefix',
        default_value='',
        description='Prefix of the names of links and joints: handed to the xacro as tf_prefix, '
        'and put before base_link and tip_link. What is no xacro must have it in its names.',
    ),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the expansion."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=expanded)])


def expanded(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the actions that set ``urdf_file`` and tidy up."""
    values = context.launch_configurations
    if not values['description_file']:
        return [SetLaunchConfiguration('urdf_file', '')]
    source = Path(values['description_file']).expanduser().resolve()
    if not source.is_file():
        raise RuntimeError(f'description_file: there is no file {source}')
    if source.suffix != '.xacro':
        return [SetLaunchConfiguration('urdf_file', str(source))]
    mappings = {'tf_prefix': values['tf_prefix']}
    for argument in shlex.split(values['description_arguments']):
        name, assignment, value = argument.partition(':=')
        if not assignment:
            raise RuntimeError(f'description_arguments: {argument!r} is not name:=value')
        mappings[name] = value
    text = xacro.process_file(str(source), mappings=mappings).toxml()
    folder = Path(tempfile.mkdtemp(prefix='robodyn_'))
    path = folder / f'{source.name.partition(".")[0]}.urdf'
    path.write_text(text, encoding='utf-8')

    def remove(event: object, context: LaunchContext) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    return [
        SetLaunchConfiguration('urdf_file', str(path)),
        RegisterEventHandler(OnShutdown(on_shutdown=remove)),
    ]
