# SPDX-License-Identifier: Apache-2.0
"""
The lifecycle node that turns joint states into torques.

Its callbacks convert a message, call one core function and convert the answer. What makes it safe
is in robodyn_ros.control.command_pipeline; its parameters are in robodyn_ros/ros_parameters.
Most of its services are answered by another process, see robodyn_ros.ros.services.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.timer import Timer
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control import control_stack
from robodyn_ros.control.command_pipeline import NotFollowing
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.settings import (
    PARAMETERS,
    ArmSettings,
    ControlSettings,
    arm_settings,
    check_live,
    checked,
)
from robodyn_ros.control.softness import light_joints
from robodyn_ros.errors import NotReady, Phrase, RejectedTrajectory, RobodynError
from robodyn_ros.model import Payload
from robodyn_ros.ros import command_line
from robodyn_ros.ros.dynamics.control_cycle import ControlCycle
from robodyn_ros.ros.dynamics.description_topic import DescriptionTopic, late_description
from robodyn_ros.ros.dynamics.diagnostics import model_status, process_status, torque_status
from robodyn_ros.ros.joint_states import elapsed_time
from robodyn_ros.ros.parameter_overrides import check_name, declare, in_parameters, values
from robodyn_ros.ros.plain_text import PlainLoggerMixin, plain
from robodyn_ros.ros.qos import LATCHED, RELIABLE
from robodyn_ros.ros.rclpy_workarounds import (
    BoundedParameterService,
    fastest_executor,
    lifecycle_state,
    log_exceptions,
    reject_invalid_transitions,
)
from robodyn_ros.ros.services import callbacks
from robodyn_ros.ros.services.service_process import CHANGE_PERIOD, SERVICES, ServiceProcess
from robodyn_ros.ros.shared_memory import Names, SharedMemory
from robodyn_ros.ros.signals import StopSignal
from robodyn_ros.ros.spinning import run_until_signal
from robodyn_ros.ros.trajectory_message import RateLimiter
from robodyn_ros.ros.watchdog import WatchdogProcess

DIAGNOSTICS_PERIOD = 1.0  # [s]
DESCRIPTION = 'the topic robot_description, as urdf_file is not given'

ABOUT = (
    'Turns joint states into torques that compensate gravity, follow trajectories or let an arm '
    'yield, from a URDF, within limits. It takes joint_states, ~/joint_trajectory, ~/target_pose, '
    '~/target_poses, ~/target_wrench and robot_description, and publishes ~/commands, ~/torques, '
    '~/dynamics_state and /diagnostics.'
)

_RETRY_PERIOD = 0.5  # between attempts to activate [s]

SUCCESS = TransitionCallbackReturn.SUCCESS
FAILURE = TransitionCallbackReturn.FAILURE


class DynamicsNode(PlainLoggerMixin, LifecycleNode):
    """
    Computes torques from joint states, in the modes and within the limits of its parameters.

    Parameters
    ----------
    shared : SharedMemory
        The memory shared with the other processes.
    services : ServiceProcess
        Answers the services; it is the caller's to close.
    watchdog : WatchdogProcess
        Commands when this process no longer does; it is the caller's to close.
    stop_signal : StopSignal
        The stop signals of the process.
    args : sequence of str, optional
        The command line; the process's own where not given.
    """

    def __init__(
        self,
        shared: SharedMemory,
        services: ServiceProcess,
        watchdog: WatchdogProcess,
        stop_signal: StopSignal,
        args: Sequence[str] | None = None,
        **node_options: Any,
    ) -> None:
        super().__init__('dynamics_node', start_parameter_services=False, **node_options)
        self._shared = shared
        self._service_process = services
        self._watchdog = watchdog
        self._stop_signal = stop_signal
        declare(self, PARAMETERS, is_lifecycle=True)
        self._checked_parameters()
        self.add_on_set_parameters_callback(self._on_check_parameters)
        self.add_post_set_parameters_callback(self._on_parameters)
        self._parameter_service = BoundedParameterService(self)
        reject_invalid_transitions(self)
        self._cycle: ControlCycle | None = None  # from configure to clean-up
        self._settings: ControlSettings | None = None  # the parameters, as the cycle has them
        self._next_settings: tuple[ControlSettings, ArmSettings]  # that were checked last
        self._robot: callbacks.Robot | None = None  # what services are answered about
        self._description = DescriptionTopic()
        self._refusal = ''  # of the last transition
        self._was_active = False
        self._is_end_logged = False  # of the services
        # Why a trajectory was not followed, and in which condition, for as long as that lasts.
        self._not_followed: tuple[str, tuple[Any, ...]] = ('', ())
        self._at_once = RateLimiter()
        name = self.get_fully_qualified_name()
        self._ignored_files = command_line.ignored_files(args, name)

        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE)
        self.create_timer(DIAGNOSTICS_PERIOD, self._on_diagnostics, clock=steady)
        self.create_subscription(
            String, 'robot_description', self._on_robot_description, LATCHED, raw=True
        )
        self.create_subscription(
            JointTrajectory, '~/joint_trajectory', self._on_trajectory, RELIABLE, raw=True
        )
        self.create_service(SetBool, '~/enable', self._on_enable)
        self.create_service(Trigger, '~/weigh_payload', self._on_weigh)
        self.create_timer(
            CHANGE_PERIOD, lambda: services.look_for_change(self._change), clock=steady
        )
        shared.names.set(
            Names(
                self.get_name(),
                self.get_namespace(),
                self.resolve_topic_name('~/commands'),
                self.resolve_topic_name('joint_states'),
                {each: self.resolve_service_name(f'~/{each}') for each in SERVICES},
            )
        )
        watchdog.opened = time.monotonic()
        self._autostart = _Autostart(self, self._parameter('autostart'))
        if self._parameter('urdf_file'):
            self._autostart.begin_soon()
        elif self._autostart.is_due:
            self.get_logger().info(f'waiting for {DESCRIPTION}')
        if self._autostart.is_left_to_others:
            self.get_logger().info(f'autostart is false: waiting for {self._activation}')

    # --- lifecycle -----------------------------------------------------------------------------

    @log_exceptions
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the robot and the parameters; errors are logged and configure fails."""
        try:
            parameters = self._checked_parameters()
            if parameters.external_effort_topic:
                check_name('external_effort_topic', parameters.external_effort_topic)
            with self._stop_signal.may_interrupt():  # nothing is commanded yet
                ready = control_stack.build_control_stack(
                    parameters, self._description.text(), elapsed_time(self)
                )
            self._cycle = ControlCycle(
                self,
                ready,
                parameters,
                self._report,
                self._shared,
                self._watchdog,
            )
        except RobodynError as error:
            late = '' if self._parameter('urdf_file') else late_description(self)
            return self._refuse(f'cannot configure: {in_parameters(error)}{late}')
        self._settings = parameters
        self._share_robot(
            callbacks.Robot(
                ready.arm,
                ready.load,
                ready.model,
                max(callbacks.LONGEST_AGE, parameters.state_timeout),
                ready.parameter_deviation,
                ready.units.effort_scale,
                time.monotonic(),
                ready.torque.algorithm,
            )
        )
        if ready.torque.algorithm != parameters.algorithm:
            self.get_logger().warning(
                f'algorithm {ready.torque.algorithm} instead of {parameters.algorithm}: '
                + '; '.join(ready.torque.notes)
            )
        for finding in ready.model.findings:
            if finding.level == 'warning':
                self.get_logger().warning(str(finding))
            else:
                self.get_logger().info(str(finding))
        limited = replace(ready.model, effort_limits=ready.pipeline.settings.effort_limits)
        for light in light_joints(limited, ready.pipeline.settings):
            self.get_logger().warning(light)
        for note in ready.units.notes:
            self.get_logger().info(note)
        self.get_logger().info('joints, base to tip: ' + ', '.join(ready.model.joint_names))
        self._report()  # imports at its first call: do that now, not between two cycles
        _relieve_garbage_collector()
        self._refusal = ''
        self._autostart.forget()
        return super().on_configure(state)

    @log_exceptions
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start to command with the next complete joint state."""
        if self._cycle is None:
            return FAILURE
        if others := self._cycle.other_commander():
            refusal = f'cannot activate: {others}; allowed: nobody else'
            # Autostart asks again and again.
            return FAILURE if refusal == self._refusal else self._refuse(refusal)
        self._refusal = ''
        self._was_active = True
        self._cycle.start()
        return super().on_activate(state)

    @log_exceptions
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Send the stop command and stop commanding."""
        if self._cycle is not None:
            self._cycle.stop()
        return super().on_deactivate(state)

    @log_exceptions
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the robot."""
        self._autostart.forget()
        self._forget_robot()
        return super().on_cleanup(state)

    @log_exceptions
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Send the stop command and forget the robot, from any state."""
        self._forget_robot()
        self._autostart.forget()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Send the stop command and be ready to be configured again."""
        self.get_logger().error('a transition failed; configure again')
        self._autostart.forget()
        self._forget_robot()
        return SUCCESS

    def _refuse(self, why: str) -> TransitionCallbackReturn:
        """Fail a transition, and say why."""
        self._refusal = why
        self.get_logger().error(why)
        self._report()
        return FAILURE

    def destroy_node(self) -> None:
        """Send the stop command, then close everything."""
        self._forget_robot()
        super().destroy_node()

    def _forget_robot(self) -> None:
        if self._cycle is not None:
            self._cycle.destroy()
            self._cycle = None
            self._refusal = ''
            self._share_robot(None)

    def _share_robot(self, robot: callbacks.Robot | None) -> None:
        """Share the robot and its load with the services and the watchdog."""
        self._robot = robot
        self._shared.robot.set(robot)

    def _on_robot_description(self, content: bytes) -> None:
        is_new = self._description.receive(content)
        if self._parameter('urdf_file'):
            return
        if self._cycle is None:
            self._autostart.begin()
        elif is_new:
            self.get_logger().warning(
                'robot_description was replaced: ignored until clean-up and configure'
            )

    def _on_trajectory(self, content: bytes) -> None:
        self._not_followed = ('', ())
        try:
            if self._cycle is None:
                raise NotFollowing(
                    'trajectory',
                    Phrase(f'the node is {self._lifecycle}, not active'),
                    'configure and activate it (lifecycle)',
                )
            self._cycle.follow(content)
        except RejectedTrajectory as error:
            if isinstance(error, NotFollowing):
                self._not_followed = (f'a trajectory was rejected: {error}', self._condition)
            self.get_logger().warning(f'trajectory rejected: {error}')
            if self._at_once.is_due(time.monotonic()):
                self._report()

    @property
    def _condition(self) -> tuple[Any, ...]:
        """The condition under which trajectories are followed."""
        pipeline = None if self._cycle is None else self._cycle.stack.pipeline
        return self._lifecycle, pipeline and (pipeline.is_enabled, pipeline.settings.mode)

    # --- services ------------------------------------------------------------------------------

    def _change(self, change: Payload | GravityChange) -> Load:
        """Apply a payload or a gravity between two cycles, and return the load."""
        cycle, robot = self._cycle, self._robot
        if cycle is None or robot is None:
            raise NotReady('the control cycle', Phrase('not configured'), 'a configured robot')
        torque = cycle.stack.torque
        load = control_stack.apply_change(cycle.stack, change)
        self._share_robot(replace(robot, load=load, model=cycle.stack.model))
        self._log_other_torque(torque)
        return load

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._cycle is None or self._lifecycle != 'active':
            response.success = False
            response.message = f'the node is {self._lifecycle}, not active'
            return response
        response.success = True
        if not request.data:
            self._cycle.stop_commanding()
            response.message = 'disabled'
        elif other := self._cycle.begin_again():
            response.success = False
            response.message = f'cannot enable: {other}; allowed: nobody else'
        else:
            response.message = 'enabled'
        return response

    def _on_weigh(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = False
        if self._cycle is None or self._lifecycle != 'active':
            response.message = f'the node is {self._lifecycle}, not active'
            return response
        stack = self._cycle.stack
        try:
            stack.pipeline.weigh(stack.model.gravity)
        except RobodynError as error:
            response.message = plain(str(error))
        else:
            response.success = True
            response.message = 'weighing what the hand takes within a second; result: /diagnostics'
        return response

    # --- parameters ----------------------------------------------------------------------------

    def _on_check_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        given = values(self, PARAMETERS)
        given.update({change.name: change.value for change in changes if change.name in given})
        try:
            parameters = checked(given)
            if self._cycle is not None:
                check_live(change.name for change in changes)
                self._next_settings = parameters, arm_settings(self._model, parameters)
                self._cycle.stack.monitor.check(parameters)
        except RobodynError as error:
            return SetParametersResult(successful=False, reason=plain(str(error)))
        return SetParametersResult(successful=True)

    def _on_parameters(self, changes: list[Parameter]) -> None:
        names = {change.name for change in changes} & {p.name for p in PARAMETERS}
        if self._cycle is None or not names:
            return
        self._settings, settings = self._next_settings
        control_stack.apply_settings(self._cycle.stack, settings)
        self._cycle.contacts.action = self._settings.on_contact

    def _checked_parameters(self) -> ControlSettings:
        return checked(values(self, PARAMETERS))

    def _parameter(self, name: str) -> Any:
        return self.get_parameter(name).value

    # --- what it tells -------------------------------------------------------------------------

    @property
    def _model(self) -> Any:
        return self._cycle.stack.model if self._cycle else None

    @property
    def _lifecycle(self) -> str:
        return lifecycle_state(self)

    @property
    def _diagnosed_name(self) -> str:
        return self.get_fully_qualified_name().lstrip('/')

    def _on_diagnostics(self) -> None:
        """Publish the diagnostics; test the model's functions, and look for command conflicts."""
        cycle = self._cycle
        if cycle is not None and self._settings is not None:
            torque = cycle.stack.torque
            control_stack.check_torque(cycle.stack)
            self._log_other_torque(torque)
            cycle.update_command_conflicts()
            if cycle.stack.pipeline.is_enabled and cycle.others.came_first:
                self._leave_to_others(cycle)
        if not self._is_end_logged and self._service_process.status == 'ended':
            self._is_end_logged = True
            self.get_logger().error('the service process has ended')
        status = self._report()
        if cycle is not None:
            cycle.log_missing_inputs(status)

    def _leave_to_others(self, cycle: ControlCycle) -> None:
        """Deactivate without a stop command, until no other node commands."""
        cycle.leave()
        self.trigger_deactivate()
        self._refuse(f'deactivated: {cycle.others.text}, and came first')
        self._autostart.activate_later()

    def _log_other_torque(self, before: RigidBodyTorque) -> None:
        """Log if the torques are computed by other code than before."""
        if self._cycle is not None and self._cycle.stack.torque is not before:
            torque = self._cycle.stack.torque
            self.get_logger().error(
                f'algorithm {torque.algorithm} instead of {before.algorithm}: '
                + '; '.join(torque.notes)
            )

    @property
    def _activation(self) -> str:
        """What a node without autostart waits for, and how to start it."""
        name, state = self.get_fully_qualified_name(), self._lifecycle
        steps = 'activate' if state == 'inactive' else 'configure, then activate'
        return (
            f'{steps} by a lifecycle manager, `ros2 lifecycle set {name} {steps.split(",")[0]}`, '
            f'or the service {name}/change_state; -p autostart:=true makes it start itself'
        )

    @property
    def _awaited(self) -> str:
        """What a node waits for before it commands, as text; empty: unknown."""
        if self._autostart.is_left_to_others:
            return '' if self._was_active else self._activation
        if self._parameter('urdf_file') or not self._autostart.is_due:
            return ''
        return DESCRIPTION + late_description(self)

    def _report(self) -> DiagnosticStatus:
        """Publish the diagnostics and return what they say about the torque."""
        name, cycle, now = self._diagnosed_name, self._cycle, time.monotonic()
        rejection, condition = self._not_followed
        notes = [rejection] if rejection and condition == self._condition else []
        if cycle is not None and cycle.drift:
            notes.append(cycle.drift)
        reports = [
            torque_status(
                name,
                self._lifecycle,
                self._refusal,
                cycle,
                now,
                awaited=self._awaited,
                notes=[*notes, *self._ignored_files],
            ),
            model_status(name, cycle.stack if cycle else None, self._service_process.status),
            process_status(name, self._watchdog, now),
        ]
        message = DiagnosticArray(status=reports)
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)
        return reports[0]


class _Autostart:
    """
    Configures and activates a node, unless it was already configured.

    An activation that is refused is tried again, until it succeeds or somebody else makes a
    transition. Two nodes that hinder each other do not try at the same time.

    Parameters
    ----------
    node : LifecycleNode
        To be started.
    is_wanted : bool
        Whether it starts itself at all.
    """

    def __init__(self, node: LifecycleNode, is_wanted: bool) -> None:
        self._node = node
        self._is_wanted = self._is_due = is_wanted
        self._timer: Timer | None = None

    @property
    def is_left_to_others(self) -> bool:
        """Whether the node must not start itself any more."""
        return not self._is_wanted

    @property
    def is_due(self) -> bool:
        """Whether it is still to be configured."""
        return self._is_due

    def begin_soon(self) -> None:
        """Configure and activate with the executor's next round."""
        if self._is_due:
            self._set_timer(0.0)

    def begin(self) -> None:
        """Configure and activate now, if that is still to be done."""
        self._stop_timer()
        if self._is_due and self._node.trigger_configure() == SUCCESS:
            self._activate()

    def forget(self) -> None:
        """Leave the transitions to others from now on."""
        self._is_due = False
        self._stop_timer()

    def activate_later(self) -> None:
        """Activate once that is possible, if the node starts itself at all."""
        if self._is_wanted and self._state == 'inactive':
            self._set_timer(_RETRY_PERIOD * (1.0 + random.random()))

    def _activate(self) -> None:
        if self._node.trigger_activate() != SUCCESS:
            self.activate_later()

    def _on_timer(self) -> None:
        if self._timer is None:  # it came due while it was being stopped
            return
        self._stop_timer()
        if self._is_due:
            self.begin()
        elif self._state == 'inactive':
            self._activate()

    @property
    def _state(self) -> str:
        return lifecycle_state(self._node)

    def _set_timer(self, period: float) -> None:
        self._stop_timer()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self._node.create_timer(period, self._on_timer, clock=steady)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None


def _relieve_garbage_collector() -> None:
    """
    Exempt all existing objects from garbage collection.

    A round over everything that imports and configuring have made would cost tens of cycles
    at 1 kHz; one over what comes later does not show.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def main(args: list[str] | None = None) -> int:
    """Run the node until a signal ends it, with its stop command and exit code 0."""
    code = command_line.exit_code(args, 'dynamics_node', ABOUT, PARAMETERS, is_lifecycle=True)
    if code is not None:
        return code
    stop_signal = StopSignal()
    shared = SharedMemory()
    watchdog = WatchdogProcess(shared, args)
    services = ServiceProcess(shared, args)
    try:
        return run_until_signal(
            'dynamics_node',
            lambda: DynamicsNode(shared, services, watchdog, stop_signal, args),
            args,
            executor=fastest_executor,
            stop_signal=stop_signal,
        )
    finally:
        watchdog.close()
        services.close()


if __name__ == '__main__':
    sys.exit(main())
