# SPDX-License-Identifier: Apache-2.0
"""
An arm in MuJoCo under mujoco_ros2_control, commanded by the model in one of three ways.

The robot is a URDF or a xacro, of which an MJCF with a motor at each joint is written; or an MJCF,
of which a URDF is written for the controllers. Until a controller commands the arm, the constant
torques of its first pose hold it: mujoco_ros2_control has no brakes.
"""

import math
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    SetLaunchConfiguration,
    Shutdown,
)
from launch_ros.actions import Node

from robodyn_ros import gravity_torque
from robodyn_ros.description.mjcf import description_of_mjcf, imported_mujoco, is_mjcf
from robodyn_ros.description.urdf import description_of_urdf_text
from robodyn_ros.description.writing import mjcf_of_description, numbers, urdf_of_description
from robodyn_ros.ros import simulated_arm
from robodyn_ros.ros.launching import at_shutdown, switch
from robodyn_ros.ros.simulated_arm import commanded, gravity_set, model_of, started

HERE = Path(__file__).parent
NEEDED = (
    'mujoco_ros2_control',
    'controller_manager',
    'joint_state_broadcaster',
    'robot_state_publisher',
)
PLUGIN = 'mujoco_ros2_control/MujocoSystemInterface'
OPTION = {'timestep': '0.001', 'integrator': 'implicitfast'}  # of an MJCF that is written here
GRAVITY = '0 0 -9.81'

ARGUMENTS = (
    *simulated_arm.arguments(
        'MuJoCo',
        'URDF, xacro or MJCF of the robot. In an MJCF each joint of the controllers has a motor; '
        'its gravity is that of the model.',
        f'that of the MJCF, else {GRAVITY}',
    ),
    switch('headless', 'Show no window.'),
    DeclareLaunchArgument(
        'real_time_factor',
        default_value='1.0',
        description='Speed of the simulation, by real time. MuJoCo waits for no controller: where '
        'the machine is busy, choose less.',
    ),
)

checked = partial(simulated_arm.checked, simulator='MuJoCo', needed=NEEDED)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the actions."""
    return simulated_arm.launch_description(
        HERE, ARGUMENTS, (f' driver_plugin:={PLUGIN}',), checked, read, simulated
    )


def read(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the actions that make a folder, set gravity, and write a URDF of an MJCF."""
    values = context.launch_configurations
    folder = tempfile.mkdtemp(prefix='robodyn_')
    result: list[LaunchDescriptionEntity] = [
        SetLaunchConfiguration('mujoco_folder', folder),
        at_shutdown(partial(shutil.rmtree, folder, ignore_errors=True)),
    ]
    source = Path(values['description_file']).expanduser().resolve()
    gravity = values['gravity'] or GRAVITY
    if is_mjcf(source):
        own = numbers(compiled(source).opt.gravity)
        gravity = values['gravity'] or own
        if [float(part) for part in gravity.split()] != [float(part) for part in own.split()]:
            raise RuntimeError(f'gravity: {gravity!r}; allowed: that of the MJCF, {own!r}')
        if values['joint_damping']:
            raise RuntimeError(
                f'joint_damping: {values["joint_damping"]!r}; allowed: none, an MJCF has its own'
            )
        urdf = Path(folder, 'arm.urdf')
        urdf.write_text(urdf_of_description(description_of_mjcf(source)), encoding='utf-8')
        result += [
            SetLaunchConfiguration('mjcf_file', str(source)),
            SetLaunchConfiguration('description_file', str(urdf)),
        ]
    return [*result, *gravity_set(gravity)]


def simulated(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return MuJoCo with the controller manager, the controllers and the robot's description."""
    values = context.launch_configurations
    robot = ElementTree.parse(values['urdf_file']).getroot()
    if robot.find('ros2_control') is None:
        add_system(robot, yaml.safe_load(values['joints']))
    if 'mjcf_file' in values:
        add_driven(robot, compiled(Path(values['mjcf_file'])))
    text, notes = commanded(ElementTree.tostring(robot, encoding='unicode'))
    given = values.get('mjcf_file')
    model = Path(given) if given else written(text, values)
    simulator = Node(
        package='mujoco_ros2_control',
        executable='ros2_control_node',
        namespace=values['namespace'],
        parameters=[{'use_sim_time': True}, values['expanded_controllers_file']],
        on_exit=Shutdown(),
        output='screen',
    )
    return started(values, in_mujoco(text, model, values), notes, [simulator])


def add_system(robot: ElementTree.Element, joints: list[str]) -> None:
    """Add <ros2_control> with joints that are commanded by effort to a robot that has none."""
    system = ElementTree.SubElement(robot, 'ros2_control', name='arm', type='system')
    ElementTree.SubElement(system, 'hardware')
    for name in joints:
        joint = ElementTree.SubElement(system, 'joint', name=name)
        ElementTree.SubElement(joint, 'command_interface', name='effort')
        for kind in ('position', 'velocity', 'effort'):
            ElementTree.SubElement(joint, 'state_interface', name=kind)


def add_driven(robot: ElementTree.Element, model: Any) -> None:
    """
    Add the joints of all actuators to <ros2_control>, at rest where the MJCF has them.

    mujoco_ros2_control commands NaN to an actuator whose joint is not there, and at the first NaN
    MuJoCo sets all controls to zero. It compares names that an actuator without one has not, and
    crashes.
    """
    (system, *_) = robot.findall('ros2_control')
    for i in range(model.nu):
        joint = model.joint(model.actuator_trnid[i, 0]) if model.actuator_trntype[i] == 0 else None
        if not model.actuator(i).name or joint is None or not joint.name:
            raise RuntimeError(
                f'description_file: actuator {model.actuator(i).name or i}; allowed: those with a '
                'name, that act on a joint with one'
            )
        if system.find(f"joint[@name='{joint.name}']") is not None:
            continue
        added = ElementTree.SubElement(system, 'joint', name=joint.name)
        for kind, value in (('position', float(joint.qpos0[0])), ('velocity', 0.0)):
            state = ElementTree.SubElement(added, 'state_interface', name=kind)
            ElementTree.SubElement(state, 'param', name='initial_value').text = repr(value)


def written(text: str, values: dict[str, str]) -> Path:
    """Return the file of the MJCF that is written of a robot, with a motor at each joint."""
    root = ElementTree.fromstring(mjcf_of_description(description_of_urdf_text(text)))
    ElementTree.SubElement(root, 'option', OPTION, gravity=values['gravity'])
    path = Path(values['mujoco_folder'], 'arm.xml')
    ElementTree.ElementTree(root).write(path, encoding='utf-8')
    return path


def in_mujoco(text: str, model: Path, values: dict[str, str]) -> str:
    """Return a robot whose hardware is a model in MuJoCo, held by torques until commanded."""
    robot = ElementTree.fromstring(text)
    systems = robot.findall('ros2_control')
    if len(systems) != 1:
        raise RuntimeError(
            f'description_file: {len(systems)} <ros2_control>; allowed: one, for each would be a '
            'simulation of its own'
        )
    (system,) = systems
    check_motors(
        model, [joint.get('name', '') for joint in system.findall('joint[command_interface]')]
    )
    hardware = system.find('hardware')
    if hardware is None:
        hardware = ElementTree.SubElement(system, 'hardware')
    hardware.clear()
    ElementTree.SubElement(hardware, 'plugin').text = PLUGIN
    parameters = {
        'mujoco_model': str(model),
        'headless': values['headless'],
        'sim_speed_factor': speed(values['real_time_factor']),
    }
    for name, value in parameters.items():
        ElementTree.SubElement(hardware, 'param', name=name).text = value
    torques = holding(robot, text, values)
    for joint in system.findall('joint'):
        effort = joint.find("state_interface[@name='effort']")
        if effort is None:  # the command would begin as NaN, for which MuJoCo zeroes all controls
            effort = ElementTree.SubElement(joint, 'state_interface', name='effort')
        for old in effort.findall("param[@name='initial_value']"):
            effort.remove(old)
        torque = torques.get(joint.get('name', ''), 0.0)
        ElementTree.SubElement(effort, 'param', name='initial_value').text = repr(torque)
    return ElementTree.tostring(robot, encoding='unicode')


def speed(factor: str) -> str:
    """Return a real-time factor as mujoco_ros2_control takes it; refuse what is none."""
    try:
        number = float(factor)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise RuntimeError(f'real_time_factor: {factor!r}; allowed: a number above zero')
    return repr(number)


def holding(robot: ElementTree.Element, text: str, values: dict[str, str]) -> dict[str, float]:
    """Return the torques that hold the arm in the pose in which it begins, by joint."""
    model = model_of(values, text)
    begins = "ros2_control/joint[@name='{}']/state_interface[@name='position']/param"
    pose = [
        float(robot.findtext(begins.format(name) + "[@name='initial_value']") or 0.0)
        for name in model.joint_names
    ]
    return dict(zip(model.joint_names, map(float, gravity_torque(model, pose))))


def check_motors(path: Path, joints: list[str]) -> None:
    """Refuse a model in which a joint has no motor whose control is its torque."""
    model = compiled(path)
    torque = {
        model.joint(model.actuator_trnid[i, 0]).name
        for i in range(model.nu)
        if model.actuator_trntype[i] == 0  # of a joint
        and model.actuator_biastype[i] == 0
        and model.actuator_gear[i, 0] * model.actuator_gainprm[i, 0] == 1.0
    }
    missing = [name for name in joints if name not in torque]
    if missing:
        raise RuntimeError(
            f'{path}: joints without a motor whose control is the torque: {", ".join(missing)}; '
            'allowed: <motor joint="..."/> of gear 1 for each joint of <ros2_control>'
        )


def compiled(path: Path) -> Any:
    """Return a model as MuJoCo compiles it."""
    return imported_mujoco().MjModel.from_xml_path(str(path))
