# SPDX-License-Identifier: Apache-2.0
"""The command pipeline of robodyn_controllers, compiled, beside that in Python, on one model."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros.compiled import export_shared
from robodyn_ros.compiled.c.shared import SharedModel, SharedPayload
from robodyn_ros.control.command_pipeline import CommandPipeline
from robodyn_ros.control.computed_torque import ControlLaw, Terms
from robodyn_ros.control.control_stack import continuous_joints, speed_limits
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.law_weights import MODES
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.possible_positions import PossiblePositions
from robodyn_ros.control.reference import Reference
from robodyn_ros.control.safety_settings import ACTIONS, SafetySettings
from robodyn_ros.control.stamp_clock import ClockReading, ElapsedTime, StampClock

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robodyn_controllers'
STRICT = ('-std=c++17', '-Wall', '-Wextra', '-Wpedantic', '-Wconversion', '-Werror')
FAULTS = (
    'none',
    'following error',
    'implausible position',
    'overspeed',
    'overload',
    'unknown velocity',
    'stale state',
    'refused reference',
    'feedback far away',
    'impossible position',
)
DOUBLES = ctypes.POINTER(ctypes.c_double)


def cpp_compiler() -> str:
    """Return the machine's C++ compiler, or skip the test."""
    named = os.environ.get('CXX')
    for command in (named,) if named else ('c++', 'g++', 'clang++'):
        if path := shutil.which(command):
            return path
    pytest.skip('there is no C++ compiler')


def headers(folder: Path) -> list[str]:
    """Return the compiler's options for the headers, robodyn_ros's as if installed."""
    installed = folder / 'include' / 'robodyn_ros'
    installed.mkdir(parents=True, exist_ok=True)
    for header in ('compiled/c/robodyn_model.h', 'control/c/torque_step.h'):
        shutil.copy(ROOT / 'robodyn_ros' / header, installed)
    return [f'-I{PACKAGE / "include"}', '-isystem', str(installed.parent)]


def compiled_core(folder: Path, *, change: tuple[str, str] | None = None) -> ctypes.CDLL:
    """Return the compiled pipeline; with one text of its headers changed, where that is given."""
    include = headers(folder)
    if change is not None:
        copy = folder / 'changed'
        shutil.copytree(PACKAGE / 'include', copy)
        texts = {path: path.read_text() for path in copy.rglob('*.hpp')}
        (header,) = (path for path, text in texts.items() if change[0] in text)
        header.write_text(texts[header].replace(*change))
        include[0] = f'-I{copy}'
    source, library = PACKAGE / 'test' / 'pipeline_c_api.cpp', folder / 'pipeline.so'
    command = [cpp_compiler(), *STRICT, '-O1', '-ffp-contract=off', '-shared', '-fPIC']
    subprocess.run(
        [*command, *include, str(source), '-o', str(library)],
        check=True,
        timeout=240,
    )
    core = ctypes.CDLL(str(library))
    core.pipeline_new.restype = ctypes.c_void_p
    core.pipeline_random_inputs.restype = ctypes.c_int64
    return core


def shared_model(model: rd.RobotModel, folder: Path) -> SharedModel:
    """Return the shared library of a model, loaded."""
    library = export_shared(model, folder)[0]
    function = ctypes.CDLL(str(library)).robodyn_model_v1
    function.restype = ctypes.POINTER(SharedModel)
    return function().contents


def pointer(array: np.ndarray | None):
    return None if array is None else array.ctypes.data_as(DOUBLES)


class SteadyClock(StampClock):
    """States without stamps: the time that passes is that of the steady clock."""

    def advance(self, time: float, now: float, longest: float) -> ClockReading:
        last, self._now = self._now, now
        return ClockReading(now - last if np.isfinite(last) else 0.0, True)


class NeverStale:
    """Stands for the buffer: what is stale is decided by the time since the last cycle."""

    elapsed = ElapsedTime()

    def stale_joints(self, now: float) -> list[str]:
        return []


@dataclass
class Both:
    """The two pipelines, given the same states, references and changes."""

    core: ctypes.CDLL
    library: SharedModel
    model: rd.RobotModel
    mode: str = 'computed_torque'
    terms: dict = field(default_factory=dict)
    kp: float = 100.0
    kd: float = 20.0
    position_guard: float = 0.05
    rate_limit: float = 1000.0
    max_reference_step: float = 0.1
    settings: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.model.n
        self.now = 10.0
        self.load = np.empty(self.library.load_size)
        self.library.make_load(None, None, pointer(self.load))
        self.safety = SafetySettings(
            **{
                'effort_limits': self.model.effort_limits,
                'torque_rate_limits': np.full(n, self.rate_limit),
                'ramp_time': 0.5,
                'state_timeout': 0.1,
                'on_stale_state': 'hold_gravity',
                'stale_hold_time': 1.0,
                'on_stop': 'hold_gravity',
                'max_following_error': 0.2,
                'damping': 5.0,
                **self.settings,
            }
        )
        self.limits = ReferenceLimits(
            self.model.joint_names,
            self.model.position_limits,
            speed_limits(self.model),
            self.max_reference_step,
            0.5,
            continuous_joints(self.model),
            PossiblePositions.of(self.model),
        )
        self.python = CommandPipeline(self._law(), NeverStale(), self.safety, self.limits)
        self.python._supervision.clock = SteadyClock()
        braking = self.safety.braking_acceleration
        numbers = (
            self.safety.ramp_time,
            self.safety.state_timeout,
            self.safety.stale_hold_time,
            self.max_reference_step,
            self.safety.max_following_error,
            self.safety.damping,
        )
        vectors = np.concatenate(
            [
                self.safety.effort_limits,
                self.safety.torque_rate_limits,
                np.full(n, np.inf) if braking is None else braking,
                self.limits.velocity_limits,
                self.limits.continuous,
                self.limits.position_limits.ravel(),
            ]
        )
        self._kept = (vectors, np.array(numbers))
        self.pipeline = ctypes.c_void_p(
            self.core.pipeline_new(
                ctypes.byref(self.library),
                *self._law_numbers(),
                ACTIONS.index(self.safety.on_stale_state),
                ACTIONS.index(self.safety.on_stop),
                pointer(self._kept[1]),
                pointer(vectors),
            )
        )
        self.differences: list[float] = []
        self.enable()

    def close(self) -> None:
        self.core.pipeline_delete(self.pipeline)

    # --- the model and the law ---------------------------------------------------------------

    def _inverse_dynamics(self, q, qd, qdd):
        result = np.empty_like(q)
        for row in range(len(q)):
            given = [np.ascontiguousarray(each[row]) for each in (q, qd, qdd)]
            self.library.inverse_dynamics(
                pointer(self._python_load), *map(pointer, given), pointer(result[row])
            )
        return result

    def _friction(self, width, qd, rigid_torque):
        result = np.empty(self.model.n)
        given = [np.ascontiguousarray(each) for each in (qd, rigid_torque)]
        self.library.friction_torque(width, *map(pointer, given), pointer(result))
        return result

    def _law(self) -> ControlLaw:
        n, load = self.model.n, self.load.copy()

        def inverse_dynamics(q, qd, qdd):
            self._python_load = load
            return self._inverse_dynamics(q, qd, qdd)

        return ControlLaw(
            inverse_dynamics,
            self._friction,
            self.mode,
            Terms(**self.terms),
            np.full(n, self.kp),
            np.full(n, self.kd),
            continuous_joints(self.model),
            limit_width=self.position_guard,
        )

    def _law_numbers(self):
        terms = Terms(**self.terms)
        flags = (terms.inertial, terms.coriolis, terms.gravity, terms.friction)
        n = self.model.n
        numbers = np.array([0.01, self.position_guard, *n * [self.kp], *n * [self.kd]])
        self._numbers = numbers
        return MODES.index(self.mode), bytes(map(int, flags)), pointer(numbers)

    # --- what is asked of both ---------------------------------------------------------------

    def enable(self) -> None:
        self.python.enable(self.now)
        self.core.pipeline_enable(self.pipeline, ctypes.c_double(self.now))

    def change_law(self, **changes) -> None:
        for name, value in changes.items():
            setattr(self, name, value)
        self.core.pipeline_change_law(self.pipeline, *self._law_numbers())
        law = self._law()
        # The model stays what it is, and may itself be on its way to another.
        law = law.__class__(
            self.python.law.inverse_dynamics,
            *(
                getattr(law, name)
                for name in ('friction_torque', 'mode', 'terms', 'kp', 'kd', 'continuous')
            ),
            limit_width=self.position_guard,
        )
        self.python.change_law(law)

    def change_load(self, payload: rd.Payload, gravity=None) -> None:
        inertia = np.asarray(payload.inertia)[np.triu_indices(3)]
        given = SharedPayload(payload.mass, (*payload.center_of_mass,), (*inertia,))
        wanted = None if gravity is None else np.array(gravity, dtype=float)
        assert (
            self.library.make_load(ctypes.byref(given), pointer(wanted), pointer(self.load)) == 0
        )
        assert self.core.pipeline_change_load(self.pipeline, pointer(self.load))
        self.python.change_model(self._law())

    def follow(self, reference: Reference) -> None:
        """Follow a reference: Python as a whole, the other as it comes with each cycle."""
        follower = self.python._follower
        follower.forget()
        follower.reference = reference
        self.python._supervision.last_fault = ''
        self.python._law.end_damping(self.safety.ramp_time)
        self.given = reference

    given: Reference | None = None

    def cancel(self) -> None:
        self.python.cancel()
        self.given = None

    def begin_stop(self) -> None:
        self.python.begin_stop()
        self.core.pipeline_begin_stop(self.pipeline)

    # --- a cycle of both ---------------------------------------------------------------------

    def cycle(self, position, velocity, period=0.001):
        """Return what Python commands, and note by how much the other one differs."""
        self.now += period
        q, qd = np.array(position, dtype=float), np.array(velocity, dtype=float)
        wanted = None
        if self.given is not None:
            sampled = self.given.sample(self.now)
            wanted = np.concatenate(
                [sampled.position, sampled.velocity, sampled.acceleration, sampled.effort]
            )
        torque = np.empty(self.model.n)
        has_command = self.core.pipeline_update(
            self.pipeline,
            ctypes.c_double(self.now),
            pointer(q),
            pointer(qd),
            pointer(wanted),
            pointer(torque),
        )
        command = None
        if self.limits.possible.include(q.tolist()):  # else the buffer gives no state
            command = self.python.step(MeasuredState(q, qd, self.now), self.now)
        if command is None:
            command = self.python.watchdog(self.now)
        return self._compared(command, has_command, torque)

    def stop_command(self, period=0.001):
        """Return Python's next stop command, and note by how much the other one differs."""
        self.now += period
        torque = np.empty(self.model.n)
        has_command = self.core.pipeline_stop_command(
            self.pipeline, ctypes.c_double(self.now), pointer(torque)
        )
        return self._compared(self.python.stop_command(self.now), has_command, torque)

    def _compared(self, command, has_command, torque):
        assert (command is not None) == bool(has_command), f'at {self.now:.3f} s'
        if command is None:
            return None
        self.differences.append(float(np.abs(torque - command.torque).max()))
        return command.torque

    @property
    def fault(self) -> str:
        return FAULTS[self.core.pipeline_fault(self.pipeline)]

    @property
    def following(self) -> str:
        names = ('none', 'following', 'braking', 'holding')
        return names[self.core.pipeline_following(self.pipeline)]


class Alone(Both):
    """The compiled pipeline by itself."""

    def cycle(self, position, velocity, period=0.001):
        python, self.python = self.python, _Silent()
        try:
            return super().cycle(position, velocity, period)
        finally:
            self.python = python

    def _compared(self, command, has_command, torque):
        return torque if has_command else None


class _Silent:
    def step(self, state, now):
        return None

    def watchdog(self, now):
        return None
