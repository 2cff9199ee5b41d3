# SPDX-License-Identifier: Apache-2.0
"""All of a robot's control, from description and settings: model, law, pipeline, contacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.command_pipeline import AddedEffort, CommandPipeline, ControlLaw
from robodyn_ros.control.contact import ContactMonitor, KnownResidual
from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer
from robodyn_ros.control.load import GravityChange, Load, gravity_text
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.settings import (
    ArmSettings,
    ControlSettings,
    arm_settings,
    chain_ends,
    command_order,
    each_joint,
)
from robodyn_ros.control.units import DriveUnits, drive_units
from robodyn_ros.description.chain import Chain
from robodyn_ros.description.records import warning
from robodyn_ros.errors import Phrase, UnreadableSource
from robodyn_ros.kinematics import reach
from robodyn_ros.model import STANDARD_GRAVITY, Payload, RobotModel
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.parameters import base_parameters

_ADDED_FRACTION = 0.1  # of the effort limits: the default of external_effort_limit


_UPRIGHT = 1e-3  # of gravity, that an upright base has along its other axes


@dataclass
class ControlStack:
    """
    The model, pipeline and monitors of a configured node.

    Parameters
    ----------
    arm : RobotModel
        As configured, carrying nothing; in chain order as everything inside.
    load : Load
        Payloads and gravity that apply.
    model : RobotModel
        The arm under the load.
    order : array of int, shape (n,)
        The chain's index of each joint, in the order of the commands.
    joint_states : JointStateBuffer
        Fed by joint states.
    pipeline : CommandPipeline
        Makes the commands.
    torque : RigidBodyTorque
        The inverse dynamics that they are made with.
    units : DriveUnits
        Of measured efforts and of the commands on the wire; everything inside is in N m or N.
    monitor : ContactMonitor
        Estimates external torques and contacts; updated while they have subscribers, or cause a
        reaction.
    parameter_deviation : array, shape (count,), or None
        Of the arm's base parameters, where it was identified.
    """

    arm: RobotModel
    load: Load
    model: RobotModel
    order: np.ndarray
    joint_states: JointStateBuffer
    pipeline: CommandPipeline
    torque: RigidBodyTorque
    units: DriveUnits
    monitor: ContactMonitor
    parameter_deviation: np.ndarray | None = None


def robot_model(settings: ControlSettings, description: str | None) -> RobotModel:
    """
    Return the model of the parameter ``urdf_file``, or else of the description.

    Raises
    ------
    RobodynError
        Neither is there, or what ``RobotModel.from_urdf`` finds wrong.
    """
    ends = chain_ends(settings.base_link, settings.tip_link, settings.tip_links)
    if settings.urdf_file:
        chain = Chain.from_urdf(Path(settings.urdf_file), **ends)
    elif description is None:
        raise UnreadableSource(
            'topic robot_description',
            Phrase('nothing received yet'),
            'a URDF on that topic, or parameter urdf_file',
        )
    else:
        chain = Chain.from_urdf_text(description, **ends)
    model = RobotModel.from_chain(chain, gravity=settings.gravity or None)
    strength = float(np.linalg.norm(model.gravity))
    is_upright = bool((np.abs(model.gravity[:2]) <= _UPRIGHT * strength).all())
    if settings.terms_gravity or (is_upright and model.gravity[2] <= 0.0):
        return model
    left = np.subtract(model.gravity, STANDARD_GRAVITY).tolist()
    message = (
        f'parameter terms.gravity is false and gravity is {gravity_text(model.gravity)} in the '
        "base link's axes: a driver that compensates that of an upright arm leaves "
        f'{gravity_text(left)} of it; terms.gravity: true with gravity: {left} command the rest'
    )
    finding = warning('tilted_driver', 'parameter terms.gravity', tuple(left), message)
    return replace(model, findings=(*model.findings, finding))


class ConfiguredArm(NamedTuple):
    """
    A model, and the other results of an identification, if there is one.

    Parameters
    ----------
    model : RobotModel
    parameter_deviation : array, shape (count,), or None
        Of its base parameters.
    scales : mapping of parameter name to array, shape (n,)
        Of the drives' units, in chain order.
    residual : KnownResidual or None
        What the model leaves unexplained.
    """

    model: RobotModel
    parameter_deviation: np.ndarray | None
    scales: Mapping[str, np.ndarray]
    residual: KnownResidual | None = None


def configured_arm(settings: ControlSettings, description: str | None) -> ConfiguredArm:
    """
    Return the arm of ``urdf_file`` or the description, as ``identified_model`` corrects it.

    Raises
    ------
    RobodynError
        What ``robot_model`` and ``Identification.load`` find wrong; ModelMismatch where the
        identified model is another robot's.
    """
    arm = ConfiguredArm(robot_model(settings, description), None, {})
    if settings.identified_model:
        # Importing it takes as long as half of the node's start; few nodes need it.
        from robodyn_ros.identification import Identification

        found = Identification.load(settings.identified_model)
        model = found.applied_to(arm.model)
        scales = {'effort_scale': found.effort_scale}
        if found.command_scale is not None:
            scales['command_scale'] = found.command_scale
        deviation = found.base_parameter_deviation(base_parameters(model))
        residual = KnownResidual(found.drive_model.residual, found.terms.presliding)
        arm = ConfiguredArm(model, deviation, scales, residual)
    if not settings.tip_links:
        return arm
    # Only now: what was identified is the whole tree.
    return arm._replace(model=arm.model.with_tip(settings.tip_link or settings.tip_links[0]))


def build_control_stack(
    settings: ControlSettings, description: str | None, elapsed: ElapsedTime | None = None
) -> ControlStack:
    """
    Return everything that a configured node runs, under simulated time where ``elapsed`` says so.

    Raises
    ------
    RobodynError
        What is wrong with the robot or the settings.
    """
    model, deviation, scales, residual = configured_arm(settings, description)
    order = command_order(model, settings.joints)
    limits = reference_limits(model)
    joint_states = JointStateBuffer(
        model.joint_names,
        settings.state_timeout,
        continuous_joints(model),
        PossiblePositions.of(model),
        elapsed,
        limits.velocity_limits,
    )
    torque = RigidBodyTorque.of(model, settings.algorithm)
    law = control_law(model, settings, torque)
    efforts = law.settings.effort_limits
    units = drive_units(model, settings, scales, efforts)
    pipeline = CommandPipeline(law, joint_states, limits)
    pipeline.added = added_effort(model, settings, efforts)
    monitor = ContactMonitor(
        model,
        settings,
        law.inverse_dynamics,
        law.friction,
        units.effort_scale,
        efforts,
        residual,
        (torque.forward_kinematics(model), torque.jacobian(model)),
    )
    return ControlStack(
        model,
        Load(model.gravity),
        model,
        order,
        joint_states,
        pipeline,
        torque,
        units,
        monitor,
        deviation,
    )


def added_effort(
    model: RobotModel, settings: ControlSettings, effort_limits: np.ndarray
) -> AddedEffort | None:
    """Return the receiver of efforts of ``external_effort_topic``; None where there is none."""
    if not settings.external_effort_topic:
        return None
    limit = _ADDED_FRACTION * effort_limits
    if settings.external_effort_limit:
        limit = each_joint(model, settings, 'external_effort_limit')
    scale = each_joint(model, settings, 'external_effort_scale')
    return AddedEffort(model.joint_names, scale, limit, settings.state_timeout)


def speed_limits(model: RobotModel) -> np.ndarray:
    """Return the velocity limits, shape (n,) [rad/s] or [m/s]; infinite where there is none."""
    return np.where(model.velocity_limits > 0.0, model.velocity_limits, np.inf)


def continuous_joints(model: RobotModel) -> np.ndarray:
    """Return which joints are continuous, shape (n,)."""
    return ~model.dh.prismatic & np.isinf(model.position_limits).all(axis=1)


def control_law(
    model: RobotModel, settings: ControlSettings, torque: RigidBodyTorque
) -> ControlLaw:
    """Return the law of some settings, for an arm under its load."""
    return ControlLaw(
        torque.under(model),
        torque.friction(model),
        arm_settings(model, settings),
        torque.forward_kinematics(model),
        torque.jacobian(model),
        model.coupling,
    )


def reference_limits(model: RobotModel) -> ReferenceLimits:
    """Return a trajectory's limits."""
    return ReferenceLimits(
        model.joint_names,
        model.position_limits,
        speed_limits(model),
        continuous_joints(model),
        PossiblePositions.of(model),
        reach(model),
        model.unmodelled_joints,
    )


def apply_settings(stack: ControlStack, settings: ArmSettings) -> None:
    """
    Apply changed parameters, checked before; a change of law is a ramp.

    Parameters
    ----------
    stack : ControlStack
        What runs.
    settings : ArmSettings
        All of them, with their new values.
    """
    pipeline = stack.pipeline
    pipeline.settings = settings
    stack.joint_states.timeout = settings.state_timeout
    stack.monitor.observer.change_longest(settings.state_timeout)
    if pipeline.added is not None:
        pipeline.added.timeout = settings.state_timeout


def apply_change(stack: ControlStack, change: Payload | GravityChange) -> Load:
    """
    Change the payload or the gravity, from the next cycle on.

    Returns
    -------
    Load
        The current one.

    Raises
    ------
    RobodynError
        What ``Load.changed`` refuses, and what the arm cannot carry where it is; then nothing has
        changed.
    """
    load, model = stack.load.changed(change, stack.arm)
    if load == stack.load:
        return load
    torque = stack.torque.checked(model)
    inverse_dynamics = torque.under(model)
    stack.pipeline.change_load(inverse_dynamics, check=True)
    stack.monitor.change_load(model, inverse_dynamics, torque.friction(model))
    stack.load, stack.model, stack.torque = load, model, torque
    return load


def check_torque(stack: ControlStack) -> None:
    """
    Compare the gravity torque at the arm's position with Newton-Euler, and switch to that if they
    differ.

    ``stack.torque`` is another one then, and its notes say why; the change of torque is that of
    a changed load. It takes half a millisecond: not for every cycle.
    """
    state, active = stack.pipeline.state, stack.pipeline.law.inverse_dynamics
    if state is None or stack.pipeline.is_model_blending:
        return
    torque = stack.torque.checked_at(state.position, active, stack.model)
    if torque is not stack.torque:
        stack.torque = torque
        inverse_dynamics = torque.under(stack.model)
        stack.pipeline.change_load(inverse_dynamics)
        stack.monitor.change_load(stack.model, inverse_dynamics, torque.friction(stack.model))
