# SPDX-License-Identifier: Apache-2.0
"""
The observer's and the detector's step as machine code, for samples that need no closer look.

Its C is ``c/contact_step.h``, which a controller in C or C++ can include, too.
``momentum_observer`` and ``contact`` compute the same in Python: they are its reference,
take every sample that it leaves to them, and serve alone where there is no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from robodyn_ros.control.computed_torque import InverseDynamics
from robodyn_ros.control.contact import Contact, ContactDetector, ContactThresholds
from robodyn_ros.control.machine_code import believed_module, module_source
from robodyn_ros.control.momentum_observer import USUAL_GAIN, MomentumObserver
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.errors import NoBackend, NonFiniteValue
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_MODULE, _NAME = 'contact_step_module.c', 'robodyn_contact_step'
_SAMPLES = 50  # that it is compared at, of each kind of observer
_PERIOD = 0.01  # [s]
_SPEEDS = (0.05, 0.015, 0.001, 0.05, -0.05)  # [rad/s] or [m/s]
_PUSHES = (0.1, 2.0, 0.0, -1.0, 0.0, 0.4)  # of the model's largest torque
_TOLERANCE = 1e-9  # of the largest number


@dataclass(frozen=True, eq=False)
class CompiledContactStep:
    """
    The function of the machine code; made by ``of``.

    Parameters
    ----------
    observed : callable
        Takes a sample into the states, and returns whether it could.
    """

    observed: Callable[..., bool]

    @classmethod
    def of(cls, model: RobotModel, inverse_dynamics: InverseDynamics) -> CompiledContactStep:
        """
        Return the step, from the cache or compiled, after a comparison with Python.

        Parameters
        ----------
        model : RobotModel
            Of the arm that it is compared for.
        inverse_dynamics : callable
            The model's.

        Raises
        ------
        NoBackend
            No compiler, or its code computes something else.
        """

        def check(module: Any) -> None:
            for is_held in (False, True):
                cls(module.observed)._check(model, inverse_dynamics, is_held)

        return cls(believed_module(module_source(_MODULE), _NAME, check).observed)

    def takes(
        self,
        constants: tuple[InverseDynamics, FloatArray],
        observer: MomentumObserver,
        detector: ContactDetector | None,
        sample: tuple[FloatArray, FloatArray, FloatArray, float],
    ) -> bool:
        """
        Take a sample into observer and detector; False: nothing has changed, they are to do it.

        Parameters
        ----------
        constants : tuple
            As ``contact_constants`` returns them, of the same observer and detector.
        observer : MomentumObserver
        detector : ContactDetector or None
        sample : tuple
            As ``MomentumObserver.update`` takes it.
        """
        state, in_contact = None, False
        if detector is not None:
            state, in_contact = detector.state, detector.contact is not None
        try:
            return self.observed(
                *constants,
                observer.longest,
                observer.state,
                state,
                in_contact,
                *sample,
            )
        except NonFiniteValue:  # of a formulation in place of the compiled model
            return False

    def _check(self, model: RobotModel, inverse_dynamics: InverseDynamics, is_held: bool) -> None:
        """Compare with Python along random samples, with contacts that begin and end."""
        generator, n = np.random.default_rng(0), model.n
        share = generator.uniform(0.01, 0.1, (6, n))
        with np.errstate(all='ignore'):
            size = float(np.abs(inverse_dynamics(*np.ones((3, 1, n)))[0]).max()) + 1.0
        if not np.isfinite(size):
            raise NoBackend('compiled step of contact', size, 'finite torques to compare')
        model = replace(
            model,
            viscous_friction=size * share[0],
            coulomb_friction=size * share[1],
            friction_curve=size * share[2:4].T,
            effort_offset=size * share[4],
            load_friction=share[5],
        )
        friction = partial(friction_of, model)
        thresholds = ContactThresholds(np.full(n, 0.3 * size), np.full(n, 0.5 * size))
        pair = [
            (
                MomentumObserver(
                    inverse_dynamics,
                    friction,
                    np.full(n, 2.0 * USUAL_GAIN),
                    is_held=is_held,
                    presliding=0.0 if is_held else 1e-3,
                ),
                ContactDetector(thresholds, ('',) * n, ('',) * n, 2.0 * _PERIOD),
            )
            for _ in range(2)
        ]
        constants = inverse_dynamics, contact_constants(model, *pair[0])
        middle, direction = generator.uniform(-1.0, 1.0, n), generator.uniform(0.8, 1.0, n)
        for k in range(_SAMPLES):
            # Fast, slow, at rest, turned round; pushes for a while, and pauses in between.
            velocity = _SPEEDS[k // 5 % len(_SPEEDS)] * direction
            push = size * _PUSHES[k // 6 % len(_PUSHES)] * generator.uniform(0.5, 1.0, n)
            position = middle + 0.01 * k
            with np.errstate(all='ignore'):
                rigid = inverse_dynamics(position[None], velocity[None], np.zeros((1, n)))[0]
            sample = position, velocity, rigid - push, _PERIOD * k
            said = [_update(*pair[0], sample), None]
            if not self.takes(constants, *pair[1], sample):
                said[1] = _update(*pair[1], sample)
            is_missed = said[0] is not None and said[1] is None
            for python, machine in zip(*pair):
                given, wanted = machine.state, python.state
                is_near = np.isclose(
                    given, wanted, rtol=_TOLERANCE, atol=_TOLERANCE * size, equal_nan=True
                )
                if is_missed or not is_near.all():
                    raise NoBackend('compiled step of contact', given.tolist(), wanted.tolist())


def contact_constants(
    model: RobotModel, observer: MomentumObserver, detector: ContactDetector | None
) -> FloatArray:
    """Return what ``observed`` is given of a model, an observer and a detector, in its order."""
    n = model.n
    moving = standing = np.full(n, np.inf)
    if detector is not None:
        moving, standing = detector.thresholds.moving, detector.thresholds.standing
    return np.concatenate(
        [
            [
                float(observer.is_held),
                observer.friction_slope,
                observer.presliding,
                0.0 if detector is None else detector.dwell,
            ],
            observer.gain,
            moving,
            standing,
            model.viscous_friction,
            model.coulomb_friction,
            *model.friction_curve.T,
            model.effort_offset,
            model.load_friction,
        ]
    )


def _update(
    observer: MomentumObserver,
    detector: ContactDetector,
    sample: tuple[FloatArray, FloatArray, FloatArray, float],
) -> Contact | None:
    found = observer.update(*sample)
    return None if found is None else detector.update(sample[1], found, sample[3])
