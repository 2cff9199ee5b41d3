# SPDX-License-Identifier: Apache-2.0
"""What a URDF does not state about an arm's masses and drives, and the options that give it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import numpy as np

from robodyn_ros.commands.options import PerJoint, Refused, of_joints
from robodyn_ros.description.findings import MASSES
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.spatial import FloatArray

EFFORT_LIMITS = (
    '--effort-limit JOINT=LIMIT, effort in the URDF, or the parameter effort_limits of a node'
)
ROTORS = (
    'no rotor inertia is known: drives that accelerate rotors are slower than this; '
    '--rotor-inertia JOINT=INERTIA gives it'
)


def limits_of(given: PerJoint, model: RobotModel, option: str, stated: FloatArray) -> FloatArray:
    """
    Return limits (n,), infinite where there is none.

    One number for all joints lowers the limits that the URDF states; ``JOINT=LIMIT``, or a number
    for each, replaces them.

    Parameters
    ----------
    given : tuple of (name, number)
        As the option ``PerJoint`` has them.
    model : RobotModel
    option : str
        For errors: ``--effort-limit``.
    stated : array, shape (n,)
        By the URDF; zero: none.
    """
    known = np.where(stated > 0.0, stated, np.inf)
    limits = of_joints(given, model, option, known)
    if limits is None:
        return known
    if not (np.asarray(limits) > 0.0).all():
        raise click.UsageError(f'{option}: each more than zero')
    return np.minimum(limits, known) if isinstance(limits, float) else np.asarray(limits)


def unknown(model: RobotModel, effort: FloatArray | None = None) -> Iterator[tuple[str, str]]:
    """
    Yield what is not known of an arm, and what gives it.

    Parameters
    ----------
    model : RobotModel
    effort : array, shape (n,), optional
        The effort limits, infinite where there is none; not given: the model's.
    """
    if not model.inertial_parameters[:, 9].any():
        yield 'no link that moves has a mass', MASSES
    limits = known_effort_limits(model) if effort is None else effort
    names = ', '.join(
        repr(name) for name, limit in zip(model.joint_names, limits) if np.isinf(limit)
    )
    if names:
        yield f'no effort limit of {names}', EFFORT_LIMITS


def refuse_unknown(
    model: RobotModel, effort: FloatArray | None = None, *, otherwise: str = ''
) -> None:
    """
    Refuse an arm whose masses or effort limits are not known, where a command needs them.

    Parameters
    ----------
    model : RobotModel
    effort : array, shape (n,), optional
        As in ``unknown``.
    otherwise : str
        Another option that does without.

    Raises
    ------
    Refused
    """
    for what, gives in unknown(model, effort):
        raise Refused(f'{what}; needed: {otherwise and f"{otherwise}, or "}{gives}')
