# SPDX-License-Identifier: Apache-2.0
"""
An arm in MuJoCo behind the topics that a robot's driver offers.

========== ======================= ============================= ==================================
direction  name                    type                          notes
========== ======================= ============================= ==================================
pub        ``joint_states``        sensor_msgs/JointState        chain order; effort: what acts
                                                                 now, over ``effort_scale``
sub        ``commands``            std_msgs/Float64MultiArray    torques in chain order [N m or N],
                                                                 times ``command_scale``; with
                                                                 ``drive.position_gain``: positions
                                                                 [rad or m], or first all positions
                                                                 and then all torques
sub        ``torques``             sensor_msgs/JointState        instead of commands, in lockstep
sub        ``tip_wrench``          geometry_msgs/WrenchStamped   what the world exerts on the tip,
                                                                 in the base link's axes, from its
                                                                 stamp on, or at once, until the
                                                                 next
pub or sub ``robot_description``   std_msgs/String               transient local; published where
                                                                 ``urdf_file`` is given, else taken
pub        ``/clock``              rosgraph_msgs/Clock           in lockstep or on request
pub        ``/diagnostics``        diagnostic_msgs/...           steps, commands, missed cycles
srv        ``~/release``           std_srvs/Trigger              ends ``hold``
srv        ``~/set_payload``       robodyn_interfaces/...        what the arm carries, from the
                                                                 next step on
srv        ``~/get_payload``       robodyn_interfaces/...
========== ======================= ============================= ==================================

The arm is held by its brakes until the first command arrives; after that the last command acts
until the next, as with a forward command controller. A command of the wrong length, or with a
number that is not finite, is ignored with a warning.

Where ``~/set_payload`` changes the weight of an arm at rest, its brakes hold it until the torques
carry that, so that the commanding node can be told next; but for ``HANDOVER_TIME`` at most.

The parameters ``drive.*`` make the drives others than torque sources (``simulation/drive.py``).
Positions before torques is what two forward command controllers send, one after the other, and
what a multi_interface_forward_command_controller with ``[position, effort]`` sends for one joint.
Torques are clipped to the URDF's effort limits.

In **lockstep** the arm moves one time step on the first ``torques`` message whose stamp equals the
last state's, and on nothing else: the controller may take as long as it likes, and a closed loop
gives the same numbers on any machine. Where ``command_scale`` is given, it waits for a message of
``commands``, too, and takes the torque from there. When nothing comes within ``lockstep_timeout``
the same state is sent again, which counts as a missed cycle once the arm has moved. With
``real_time`` it runs no faster than that, and on a loaded machine slower.

With ``hold`` the arm stays on its brakes, whatever is commanded, until ``~/release`` is called. In
lockstep time stands still, too, so that whatever is set up meanwhile (a trajectory, parameters) is
there from the first step on, however long that takes; the release then goes on to the next stamp.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from robodyn_interfaces.srv import GetPayload, SetPayload
from robodyn_ros.control.load import Load
from robodyn_ros.control.settings import chain_ends
from robodyn_ros.description.chain import Chain
from robodyn_ros.description.urdf import urdf_text
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.errors import (
    InvalidArgument,
    NonFiniteValue,
    NoSolution,
    Phrase,
    shown,
)
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.ros import conversions, graph
from robodyn_ros.ros.conversions import seconds
from robodyn_ros.ros.dynamics.description_topic import take_description
from robodyn_ros.ros.parameter_overrides import declared_values
from robodyn_ros.ros.plain_text import PlainLoggerMixin
from robodyn_ros.ros.qos import LATCHED, RECORDING, RELIABLE
from robodyn_ros.ros.services import callbacks
from robodyn_ros.ros.spinning import run_from_command_line
from robodyn_ros.ros_parameters import parameters_of
from robodyn_ros.simulation.arm import ArmSimulation, Sensors
from robodyn_ros.simulation.drive import Drive

LONGEST_LAG = 0.1
"""Real time that is made up for after a pause [s]; the rest of a longer one is skipped."""

WAITING_TIME = 3.0
"""For the first command, before the log says what is missing [s]."""

HANDOVER_TIME = 30.0
"""For the torques to carry a new payload, before the brakes let go of it [s] of simulated time."""

CARRIED = 0.95
"""Fraction of a change of weight that the torques must carry before the brakes release."""

AT_REST = 0.05
"""Highest speed at which the brakes engage [rad/s] or [m/s]."""

MOST_WRENCHES = 100
"""Longest queue of wrenches."""


ABOUT = (
    'An arm in MuJoCo behind the topics of a driver: it publishes joint_states, takes commands '
    '(torques in chain order, times command_scale), and reads its URDF from urdf_file or the '
    'topic robot_description.'
)


PARAMETERS = parameters_of('simulator_node')


class SimulatorNode(PlainLoggerMixin, Node):
    """
    Steps an arm in real time or in lockstep.

    Its parameters are ``PARAMETERS``, all read once.

    Raises
    ------
    RobodynError
        A parameter or the URDF file cannot be used.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('simulator_node', **node_options)
        self._given = given = declared_values(self, PARAMETERS)
        _check_drive(given)
        urdf_file = given['urdf_file']
        self._ends = chain_ends(given['base_link'], given['tip_link'], given['tip_links'])
        self._time_step, self._lockstep = given['time_step'], given['lockstep']
        self._awaits_release = given['hold']
        self._next_step = time.monotonic()
        self._is_servo = bool(given['drive.position_gain'])
        self._sensors = Sensors(
            given['position_resolution'],
            given['velocity_noise'],
            np.array(given['effort_noise'] or [0.0]),
            given['sensor_seed'],
        )

        self._timer: Any = None
        # The last command, positions (None: no servo) and torques, and what acts by it; None: held
        # by the brakes.
        self._command: tuple[np.ndarray | None, np.ndarray] | None = None
        self._torque: np.ndarray | None = None
        self._handover: tuple[np.ndarray, np.ndarray, float] | None = None
        self._is_answered = self._is_commanded = False  # since the last step, in lockstep
        self._steps = 0
        self._began = time.monotonic()
        self._logged_missing = ''
        self._commands = 0
        self._missed_cycles = 0

        # In lockstep nothing paces the states but the controller: a recorder that stands still for
        # a moment must find those of meanwhile.
        self._states = self.create_publisher(
            JointState, 'joint_states', RECORDING if self._lockstep else RELIABLE
        )
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE)
        self._clock_publisher = (
            self.create_publisher(ClockMessage, '/clock', RELIABLE)
            if given['publish_clock'] or self._lockstep
            else None
        )
        if urdf_file:
            self._load(Chain.from_urdf(Path(urdf_file), **self._ends))
            description = self.create_publisher(String, 'robot_description', LATCHED)
            description.publish(String(data=urdf_text(Path(urdf_file))))
        else:
            take_description(
                self, lambda text: self._load(Chain.from_urdf_text(text, **self._ends))
            )

    # --- setting up ----------------------------------------------------------------------------

    def _load(self, chain: Chain) -> None:
        given, gravity = self._given, self._given['gravity'] or None
        self._simulation = simulation = ArmSimulation(
            chain,
            gravity=gravity,
            time_step=self._time_step,
            initial_position=given['initial_position'] or None,
            rotor_inertia=given['rotor_inertia'] or None,
        )
        self._effort_scale, self._command_scale, position_gain, velocity_gain = (
            _for_each_joint(name, given[name] or [default], simulation.n)
            for name, default in (
                ('effort_scale', 1.0),
                ('command_scale', 1.0),
                ('drive.position_gain', 0.0),
                ('drive.velocity_gain', 0.0),
            )
        )
        self._awaits_command = self._lockstep and bool(given['command_scale'])
        self._tip = given['tip_link'] or chain.tip_links[0]
        arm = RobotModel.from_chain(chain, gravity=gravity).with_tip(self._tip)
        self._robot = callbacks.Robot.under(Load(arm.gravity), arm)
        self._drive = Drive(
            arm,
            position_gain,
            velocity_gain,
            given['drive.compensates_gravity'],
            given['drive.compensates_friction'],
        )
        self._axes = ('', chain.base_link)  # that a wrench may be given in
        self._wrenches: list[tuple[float, list[float]]] = []  # that wait for their time
        self.create_subscription(WrenchStamped, 'tip_wrench', self._on_wrench, RELIABLE)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        if self._lockstep:
            self.create_subscription(JointState, 'torques', self._on_torques, RELIABLE)
            if self._awaits_command:
                self.create_subscription(Float64MultiArray, 'commands', self._on_command, RELIABLE)
            self._timer = self.create_timer(
                self._given['lockstep_timeout'], self._send_again, clock=steady
            )
        else:
            self.create_subscription(Float64MultiArray, 'commands', self._on_command, RELIABLE)
            self._due = time.monotonic() + self._time_step
            self._timer = self.create_timer(self._time_step, self._catch_up, clock=steady)
        self.create_service(SetPayload, '~/set_payload', self._on_set_payload)
        self.create_service(GetPayload, '~/get_payload', self._on_get_payload)
        self.create_timer(1.0, self._publish_diagnostics, clock=steady)
        self.create_service(Trigger, '~/release', self._on_release)
        names = ', '.join(simulation.joint_names)
        self.get_logger().info(f'{simulation.n} joints held by their brakes: {names}')
        self._publish_state()

    def _on_release(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        response.success = self._awaits_release
        response.message = 'released' if self._awaits_release else 'not held'
        if self._awaits_release and self._lockstep:
            self._step()  # to a stamp that nothing from before answers
            self._publish_state()
            self._timer.reset()
        self._awaits_release = False
        return response

    # --- lockstep ------------------------------------------------------------------------------

    def _on_torques(self, message: JointState) -> None:
        if self._awaits_release or message.header.stamp != self._stamp:
            return  # an answer to a state that was sent again, and answered before
        try:
            by_name = dict(zip(message.name, message.effort, strict=True))
            torque = [by_name[name] for name in self._simulation.joint_names]
        except (KeyError, ValueError):
            self._warn(f'torques ignored: no effort for each of {self._simulation.joint_names}')
            return
        if self._awaits_command:
            self._is_answered = True
        elif not self._take(torque):
            return
        self._step_in_lockstep()

    def _step_in_lockstep(self) -> None:
        """Make a step, once every awaited message has come."""
        if self._awaits_command and not (self._is_answered and self._is_commanded):
            return
        self._is_answered = self._is_commanded = False
        if self._given['real_time']:
            now = time.monotonic()
            time.sleep(max(self._next_step - now, 0.0))
            self._next_step = max(self._next_step, now - LONGEST_LAG) + self._time_step
        self._step()
        self._publish_state()
        self._timer.reset()

    def _send_again(self) -> None:
        if not self._simulation.brakes_engaged:
            self._missed_cycles += 1
        self._publish_state(again=True)

    # --- real time -----------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Make the steps that are due."""
        now, clock = time.monotonic(), self.get_clock().now().nanoseconds
        self._due = max(self._due, now - LONGEST_LAG)
        while self._due <= now:
            self._step()
            # A late state bears the time that it is of: its velocity is that of its positions.
            self._publish_state(max(clock - round((now - self._due) * 1e9), 0))
            self._due += self._time_step

    # --- both ----------------------------------------------------------------------------------

    def _on_command(self, message: Float64MultiArray) -> None:
        if self._awaits_release:
            return
        if self._take(message.data, self._command_scale) and self._lockstep:
            self._is_commanded = True
            self._step_in_lockstep()

    def _take(self, command: Sequence[float], scale: np.ndarray | float = 1.0) -> bool:
        """Store a command for the next step, and return whether it was valid."""
        array, n = np.array(command, dtype=float), self._simulation.n
        sizes = (n, 2 * n) if self._is_servo else (n,)
        if array.ndim != 1 or len(array) not in sizes or not np.isfinite(array).all():
            what = f'{n} positions, or {2 * n}: then torques' if self._is_servo else f'{n} torques'
            self._warn(f'command ignored: {shown(array)} is not {what}')
            return False
        position = array[:n] if self._is_servo else None
        torques = array[n:] if self._is_servo else array
        with np.errstate(over='ignore'):
            torques = (torques if len(torques) else np.zeros(n)) / scale
        if not np.isfinite(torques).all():
            self._warn(f'command ignored: over command_scale {shown(array)} is no torque')
            return False
        self._command = position, torques
        self._update_torque()
        self._commands += 1
        return True

    def _update_torque(self) -> None:
        """Let the drives act on the command where the arm is now."""
        if self._command is None:
            self._torque = None
            return
        simulation, (position, effort) = self._simulation, self._command
        self._torque = self._drive.torque(
            simulation.position, simulation.velocity, effort=effort, desired_position=position
        )

    def _on_wrench(self, message: WrenchStamped) -> None:
        if message.header.frame_id not in self._axes:
            self._warn(
                f'tip_wrench ignored: in the axes of {message.header.frame_id[:40]!r}; allowed: '
                f'{self._axes[1]!r}, or none'
            )
            return
        force, moment = message.wrench.force, message.wrench.torque
        wrench = [force.x, force.y, force.z, moment.x, moment.y, moment.z]
        stamp = seconds(message.header.stamp)
        if stamp <= seconds(self._stamp):
            self._push(wrench)
        elif len(self._wrenches) >= MOST_WRENCHES:
            self._warn(f'tip_wrench ignored: {MOST_WRENCHES} wait for their time already')
        else:
            self._wrenches.append((stamp, wrench))
            self._wrenches.sort(key=itemgetter(0))

    def _push(self, wrench: list[float]) -> None:
        try:
            self._simulation.push(wrench, self._tip)
        except NonFiniteValue as error:
            self._warn(f'tip_wrench ignored: {error}')

    def _on_set_payload(self, request: Any, response: Any) -> Any:
        """Attach a payload to the arm; the node that compensates its weight needs it, too."""

        def change(payload: Payload) -> Load:
            before = self._robot
            load, _ = before.load.changed(payload, before.arm)
            self._robot = callbacks.Robot.under(load, before.arm)
            self._simulation.carry(load.payloads)
            if self._given['drive.knows_payload']:
                self._drive = replace(self._drive, model=self._robot.model)
            self._update_torque()
            self.get_logger().info(f'carries {load}; tell whoever commands the torques')
            self._begin_handover(before.model)
            return load

        return callbacks.set_payload(self._robot, request, response, change)

    def _begin_handover(self, before: RobotModel) -> None:
        """Hold an arm at rest after a change of payload, until the torques carry its weight."""
        simulation = self._simulation
        if self._is_servo:
            return  # it carries the weight by its sag
        if self._torque is None or np.abs(simulation.velocity).max() > AT_REST:
            return
        position = simulation.position
        weight = gravity_torque(self._robot.model, position)
        change = weight - gravity_torque(before, position)
        if change.any():
            simulation.brake()
            self._handover = weight, change, simulation.time + HANDOVER_TIME

    def _is_held(self) -> bool:
        """Return whether the brakes hold the arm: before the first command, or in a handover."""
        if self._torque is None or self._handover is None:
            return self._torque is None
        weight, change, end = self._handover
        missing = np.linalg.norm(weight - self._torque) / np.linalg.norm(change)
        if missing > 1.0 - CARRIED and self._simulation.time < end:
            return True
        if missing > 1.0 - CARRIED:
            self.get_logger().warning(
                f'the brakes let go of the payload after {HANDOVER_TIME:g} s, though the torques '
                'do not carry it: tell whoever commands them, by ~/set_payload of dynamics_node'
            )
        self._handover = None
        return False

    def _on_get_payload(self, request: Any, response: Any) -> Any:
        return callbacks.get_payload(self._robot, request, response)

    def _step(self) -> None:
        while self._wrenches and self._wrenches[0][0] <= seconds(self._stamp):
            self._push(self._wrenches.pop(0)[1])
        if self._is_held() or self._torque is None:
            self._simulation.wait()
        else:
            try:
                self._simulation.step(self._torque)
            except (NoSolution, NonFiniteValue) as error:
                self._command = None
                self._simulation.brake()
                self._warn(f'held by its brakes until the next command: {error}')
            self._update_torque()
        self._steps += 1

    def _publish_state(self, nanoseconds: int | None = None, *, again: bool = False) -> None:
        """Publish the arm's state, of a time of the node's clock; None: of now."""
        simulation = self._simulation
        if not again:
            self._stamp = self._next_stamp(nanoseconds)
            effort = np.zeros(simulation.n) if self._torque is None else self._torque
            self._measured = self._sensors.measured(
                simulation.position, simulation.velocity, effort
            )
        if self._clock_publisher is not None:
            self._clock_publisher.publish(ClockMessage(clock=self._stamp))
        position, velocity, effort = self._measured
        message = JointState(
            name=simulation.joint_names,
            position=position,
            velocity=velocity,
            effort=effort / self._effort_scale,
        )
        message.header.stamp = self._stamp
        self._states.publish(message)

    def _next_stamp(self, nanoseconds: int | None) -> Time:
        if self._clock_publisher is not None:
            # One step ahead of the physics' time, which begins at zero: a zero stamp means none.
            nanoseconds = (self._steps + 1) * round(self._time_step * 1e9)
        elif nanoseconds is None:
            return self.get_clock().now().to_msg()
        whole, nanoseconds = divmod(nanoseconds, 10**9)
        return Time(sec=whole, nanosec=nanoseconds)

    def _publish_diagnostics(self) -> None:
        message = 'held by its brakes' if self._simulation.brakes_engaged else 'moving freely'
        if self._awaits_release:
            message = f'{message} until ~/release is called'
        is_awaited = not (self._commands or self._awaits_release)
        is_awaited &= time.monotonic() - self._began > WAITING_TIME
        if missing := self._missing() if is_awaited else '':
            message = f'{message}: {missing}'
            if missing != self._logged_missing:
                self._logged_missing = missing
                self.get_logger().warning(message)
        status = conversions.diagnostic_status(
            f'{self.get_fully_qualified_name()[1:]}: arm',
            'mujoco',
            DiagnosticStatus.WARN if missing else DiagnosticStatus.OK,
            message,
            {
                'steps': self._steps,
                'commands': self._commands,
                'missed_cycles': self._missed_cycles,
            },
        )
        self._diagnostics.publish(conversions.diagnostics(self._stamp, status))

    def _missing(self) -> str:
        """Return why no command comes, and what helps, as text; empty: nothing is known."""
        name, kind = 'commands', 'std_msgs/msg/Float64MultiArray'
        if self._lockstep and not self._is_answered:
            name, kind = 'torques', 'sensor_msgs/msg/JointState'
        topic = self.resolve_topic_name(name)
        if publishers := graph.publishers(self, topic):
            if not self._lockstep:
                return ''
            return (
                f'no {name} come on {topic}: {graph.listed(publishers)} must be active, with '
                f'use_sim_time:=true and a state_timeout well over lockstep_timeout = '
                f'{self._given["lockstep_timeout"]:g}'
            )
        elsewhere = [each for each in graph.publishing(self, kind) if each.endswith(f'/{name}')]
        if elsewhere:
            return (
                f'nobody publishes on {topic}, but on {graph.listed(elsewhere)}: '
                f'-r {name}:={elsewhere[0]} takes it'
            )
        return f'nobody publishes on {topic}' if self._lockstep else ''

    def _warn(self, text: str) -> None:
        self.get_logger().warning(text, throttle_duration_sec=1.0)


def _check_drive(given: dict[str, Any]) -> None:
    """Refuse parameters of a drive that cannot be together."""
    if not given['drive.position_gain'] and given['drive.velocity_gain']:
        raise InvalidArgument(
            'parameter drive.velocity_gain',
            list(given['drive.velocity_gain']),
            'none without drive.position_gain',
        )
    if given['drive.position_gain'] and given['lockstep']:
        raise InvalidArgument(
            'parameter drive.position_gain',
            list(given['drive.position_gain']),
            'none in lockstep, which answers torques',
        )


def _for_each_joint(name: str, given: Sequence[float], n: int) -> np.ndarray:
    """Return a parameter's numbers, shape (n,)."""
    factors = np.array(given, dtype=float)
    if len(factors) not in (1, n):
        raise InvalidArgument(f'parameter {name}', Phrase(f'{len(factors)} values'), f'1 or {n}')
    return np.broadcast_to(factors, n)


def main(args: list[str] | None = None) -> int:
    """Run the node until a signal ends it with code 0; 1 where it cannot begin."""
    return run_from_command_line('simulator_node', ABOUT, PARAMETERS, SimulatorNode, args)


if __name__ == '__main__':
    sys.exit(main())
