# SPDX-License-Identifier: Apache-2.0
"""
Probe an arm's commands with small torques, and record what they do for ``robodyn command-check``.

    python examples/check_commands.py --urdf arm.urdf --commands /controller/commands -o probed.csv
    python examples/check_commands.py        # two joints in MuJoCo whose drives are wrong

The arm must stay where it is under the commands of ``--holding``: before this is run on a real
one, see docs/is_your_effort_a_torque.md. Each joint state is answered by a command; both go to the
CSV file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
import numpy as np
import rclpy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robodyn_ros import RobotModel
from robodyn_ros.identification import CommandProbe, Recording, check_commands

PATIENCE = 10.0  # without a joint state [s]
# In the demonstration: what a newton metre is for each drive; the first is reversed.
SCALES = (-2.0, 0.5)
DRIVEN_ARM = """<robot name="two_joints">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="3"/>
<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="40" velocity="3"/>
<dynamics damping="0.5" friction="0.8"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="20" velocity="3"/>
<dynamics damping="0.3" friction="0.4"/></joint>
</robot>"""


def probed(
    model: RobotModel, probe: CommandProbe, commands: str, namespace: str = ''
) -> tuple[Recording, str]:
    """Answer joint states until the probe is over; return what was recorded, and a problem."""
    node = rclpy.create_node('check_commands', namespace=namespace)
    publisher = node.create_publisher(Float64MultiArray, commands, 10)
    # A simulator in lockstep goes on when each state has its answer here, too.
    answers = node.create_publisher(JointState, 'torques', 10) if namespace else None
    rows: list[tuple[float, np.ndarray, np.ndarray]] = []
    heard = [time.monotonic()]

    def on_state(message: JointState) -> None:
        position_of = dict(zip(message.name, message.position))
        if probe.is_over or not set(model.joint_names) <= set(position_of):
            return
        heard[0] = time.monotonic()
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        position = np.array([position_of[name] for name in model.joint_names])
        command = probe.command(stamp, position)
        publisher.publish(Float64MultiArray(data=command.tolist()))
        if answers is not None:
            answers.publish(
                JointState(header=message.header, name=message.name, effort=command.tolist())
            )
        rows.append((stamp, position, command))

    node.create_subscription(JointState, 'joint_states', on_state, 100)
    problem = ''
    try:
        while not probe.is_over and not problem:
            rclpy.spin_once(node, timeout_sec=0.1)
            if time.monotonic() - heard[0] > PATIENCE:
                problem = f'no joint state of {model.joint_names} for {PATIENCE:g} s'
    finally:  # on Ctrl-C, too: a controller keeps the last command
        publisher.publish(Float64MultiArray(data=probe.holding.tolist()))
        node.destroy_node()
    if not rows:
        raise SystemExit(problem)
    stamps, position, command = (np.array(column) for column in zip(*rows))
    recording = Recording(model.joint_names, stamps - stamps[0], position, None, command)
    return recording, problem or probe.problem


def write(path: Path, recording: Recording) -> None:
    """Write the columns that ``robodyn command-check`` reads: commands as efforts."""
    names = recording.joint_names
    header = ','.join(['time', *names, *(f'{name}.effort' for name in names)])
    table = np.column_stack([recording.time, recording.position, recording.effort])
    np.savetxt(path, table, delimiter=',', header=header, comments='', encoding='utf-8')


def demonstration(output: Path) -> None:
    """Probe two joints in MuJoCo, and say what was found beside what is true."""
    from robodyn_ros.ros.demo.node_process import NodeProcess

    folder = Path(tempfile.mkdtemp())
    urdf = folder / 'arm.urdf'
    urdf.write_text(DRIVEN_ARM, encoding='utf-8')
    # A URDF has no rotors: these are known to be as good as none.
    model = RobotModel.from_urdf(urdf).with_rotor_inertia([1e-9, 1e-9])
    namespace = f'/commands_{os.getpid()}'
    simulator = NodeProcess(
        'simulator_node',
        namespace=namespace,
        parameters={
            'urdf_file': str(urdf),
            'time_step': 0.002,
            'lockstep': True,
            'command_scale': [1.0 / scale for scale in SCALES],
        },
        remappings={'/clock': 'clock', '/diagnostics': 'diagnostics'},
        log=folder / 'simulator.log',
    )
    with simulator:
        probe = CommandProbe(model)
        recording, problem = probed(model, probe, 'commands', namespace)
    write(output, recording)
    print(problem or f'wrote {output}: {recording.duration:.0f} s')
    for each, true in zip(check_commands(model, recording).joints, SCALES):
        print(f'{each.joint}: {each.scale:.3f} ± {each.deviation:.2g} N m for a unit; is {true}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--urdf', type=Path)
    parser.add_argument('--base')
    parser.add_argument('--tip')
    parser.add_argument('--commands', default='commands', help='topic of Float64MultiArray')
    parser.add_argument('--holding', type=float, nargs='+', default=[0.0])
    parser.add_argument('--largest', type=float, nargs='+', help="in the drives' unit")
    parser.add_argument('-o', '--output', type=Path, default=Path('probed.csv'))
    given = parser.parse_args()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        if given.urdf is None:
            demonstration(given.output)
            sys.exit(0)
        arm = RobotModel.from_urdf(given.urdf, base_link=given.base, tip_link=given.tip)
        largest = given.largest and (given.largest if len(given.largest) > 1 else given.largest[0])
        holding = given.holding if len(given.holding) > 1 else given.holding[0]
        probe = CommandProbe(arm, holding=holding, largest=largest)
        recorded, problem = probed(arm, probe, given.commands)
        write(given.output, recorded)
        print(problem or f'wrote {given.output}')
        sys.exit(1 if problem else 0)
    finally:
        rclpy.try_shutdown()
