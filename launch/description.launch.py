# SPDX-License-Identifier: Apache-2.0
"""
Part of the other launch files: sets the launch configuration ``urdf_file``.

It is the path of the robot's URDF. A xacro is expanded into a temporary file, which is removed at
shutdown.
"""

import math
import shlex
import shutil
import tempfile
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import xacro
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    OpaqueFunction,
    SetLaunchConfiguration,
)

from robodyn_ros.ros.launching import argument, at_shutdown

ARGUMENTS = (
    argument('description_file'),
    DeclareLaunchArgument(
        'description_arguments',
        default_value='',
        description='Further arguments of the xacro, as on its command line: "name:=value ...".',
    ),
    argument('tf_prefix'),
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
    least = values.get('joint_damping', '')
    if source.suffix != '.xacro' and not least:
        return [SetLaunchConfiguration('urdf_file', str(source))]
    mappings = {'tf_prefix': values['tf_prefix']}
    for given in shlex.split(values['description_arguments']):
        name, assignment, value = given.partition(':=')
        if not assignment:
            raise RuntimeError(f'description_arguments: {given!r} is not name:=value')
        mappings[name] = value
    if source.suffix == '.xacro':
        text = xacro.process_file(str(source), mappings=mappings).toxml()
    else:
        text = source.read_text(encoding='utf-8')
    if least:
        text = damped(text, least)
    folder = Path(tempfile.mkdtemp(prefix='robodyn_'))
    path = folder / f'{source.name.partition(".")[0]}.urdf'
    path.write_text(text, encoding='utf-8')
    return [
        SetLaunchConfiguration('urdf_file', str(path)),
        at_shutdown(partial(shutil.rmtree, folder, ignore_errors=True)),
    ]


def damped(text: str, least: str) -> str:
    """Return a robot whose joints have at least this viscous friction [N m s/rad, N s/m]."""
    try:
        damping = float(least)
    except ValueError:
        damping = math.nan
    if not 0.0 <= damping < math.inf:
        raise RuntimeError(f'joint_damping: {least!r}; allowed: a number from zero on')
    robot = ElementTree.fromstring(text)
    for joint in robot.findall('joint'):
        if joint.get('type') not in ('revolute', 'continuous', 'prismatic'):
            continue
        dynamics = joint.find('dynamics')
        if dynamics is None:
            dynamics = ElementTree.SubElement(joint, 'dynamics')
        if float(dynamics.get('damping', 0.0)) < damping:
            dynamics.set('damping', f'{damping:g}')
    return ElementTree.tostring(robot, encoding='unicode')
