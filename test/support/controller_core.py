# SPDX-License-Identifier: Apache-2.0
"""The core as a controller runs it: compiled into programs, or cycle by cycle from Python."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from controllers_package import controllers_package

import robodyn_ros as rd
from robodyn_ros.compiled import export_shared
from robodyn_ros.compiled.c.shared import SharedModel
from robodyn_ros.control.command_pipeline import core_settings
from robodyn_ros.control.control_stack import continuous_joints, speed_limits
from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.reference import Reference
from robodyn_ros.control.settings import PARAMETERS, ArmSettings
from robodyn_ros.model import possible_range
from robodyn_ros.motions.possible_positions import PossiblePositions

ROOT = Path(__file__).resolve().parents[2]
STRICT = ('-std=c++17', '-Wall', '-Wextra', '-Wpedantic', '-Wconversion', '-Wshadow', '-Werror')
DOUBLES = ctypes.POINTER(ctypes.c_double)


# --- programs ----------------------------------------------------------------------------------


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
    links = {'core': 'control/core', 'robodyn_model.h': 'compiled/c/robodyn_model.h'}
    for name, path in links.items():
        if not (installed / name).exists():
            (installed / name).symlink_to(ROOT / 'robodyn_ros' / path)
    return [f'-I{controllers_package() / "include"}', '-isystem', str(installed.parent)]


def installed_core(folder: Path) -> Path:
    """Install there what setup.py installs beside the package; return the CMake configuration."""
    done = subprocess.run(
        [sys.executable, 'setup.py', '--quiet', 'install_data', f'--install-dir={folder}'],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / 'share' / 'robodyn_ros' / 'cmake'


def sanitizers(folder: Path, names: str) -> list[str]:
    """Return the compiler's options for sanitizers, such as ``address,undefined``, or skip."""
    options = [f'-fsanitize={names}', '-fno-sanitize-recover=all', '-g']
    source, program = folder / 'nothing.cpp', folder / 'nothing'
    source.write_text('int main() {}')
    command = [cpp_compiler(), *options, source, '-o', program]
    has_them = subprocess.run(command, capture_output=True).returncode == 0
    if not has_them or subprocess.run([program], capture_output=True).returncode != 0:
        pytest.skip(f'{cpp_compiler()} has no -fsanitize={names}')
    return options


def compiled_program(source: Path, folder: Path, options: Sequence[str]) -> Path:
    """Return the program that a source is compiled to, without a warning."""
    program = folder / source.stem
    command = [cpp_compiler(), *STRICT, '-O1', '-ffp-contract=off', *options, source]
    done = subprocess.run(
        [*command, '-o', program, '-lpthread', '-ldl'],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return program


def shared_model(library: Path) -> SharedModel:
    """Return the model of a shared library, loaded."""
    function = ctypes.CDLL(str(library)).robodyn_model_v5
    function.restype = ctypes.POINTER(SharedModel)
    return function().contents


def exported(model: rd.RobotModel, folder: Path) -> Path:
    """Return the shared library of a model."""
    return export_shared(model, folder)[0]


_CHOICES = {each.name.replace('.', '_'): each.choices for each in PARAMETERS if each.choices}


def setting_numbers(settings: ArmSettings, limits: ReferenceLimits) -> np.ndarray:
    """Return settings as numbers in the core's order, for ``settings_from_numbers.hpp``."""
    numbers: list[float] = []
    for name in core.SETTINGS:
        value = getattr(settings, name)
        if name in _CHOICES:
            numbers.append(_CHOICES[name].index(value))
        elif isinstance(value, (np.ndarray, tuple)):
            numbers += [len(value), *value]
        else:
            numbers.append(value)
    for each in (limits.position_limits.ravel(), limits.velocity_limits, limits.continuous):
        numbers += [len(each), *each]
    return np.array(numbers, dtype=float)


def pointer(array: np.ndarray | None):
    return None if array is None else array.ctypes.data_as(DOUBLES)


# --- cycles ------------------------------------------------------------------------------------


@dataclass
class Cycles:
    """The pipeline in the cycles of a controller, whose setpoint comes with each of them."""

    model: rd.RobotModel
    mode: str = 'computed_torque'
    kp: float = 100.0
    kd: float = 20.0
    rate_limit: float = 1000.0
    settings: dict = field(default_factory=dict)
    given: Reference | None = None

    def __post_init__(self) -> None:
        model, n = self.model, self.model.n
        self.now = 10.0
        torque = RigidBodyTorque.of(model, 'compiled')
        settings = ArmSettings(
            **{
                'mode': self.mode,
                'kp': np.full(n, self.kp),
                'kd': np.full(n, self.kd),
                'terms_gravity_factor': np.ones(n),
                'impedance_stiffness': np.zeros(n),
                'impedance_nullspace_stiffness': np.zeros(n),
                'effort_limits': model.effort_limits,
                'torque_rate_limit': np.full(n, self.rate_limit),
                'braking_acceleration': np.full(n, np.inf),
                'observer_gain': np.full(n, 30.0),
                **self.settings,
            }
        )
        limits = ReferenceLimits(
            model.joint_names,
            model.position_limits,
            speed_limits(model),
            continuous_joints(model),
            PossiblePositions.of(model),
        )
        self.possible = possible_range(model.position_limits, model.dh.prismatic)
        self.pipeline = core.ArmRuntime(
            core_arm(torque.under(model), torque.friction(model), n),
            core_settings(settings, limits),
        )
        self.pipeline.enable(self.now)

    def cycle(self, position, velocity, period=0.001) -> np.ndarray | None:
        """Return what is commanded."""
        self.now += period
        wanted = None
        if self.given is not None:
            at = self.given.sample(self.now)
            wanted = np.array([at.position, at.velocity, at.acceleration, at.effort])
        found = self.pipeline.update(self.now, position, velocity, wanted, self.possible)
        return None if found is None else found[0]

    @property
    def fault(self) -> str:
        faults = self.pipeline.faults
        return faults[0].cause.name if faults else 'none'

    @property
    def following(self) -> str:
        return self.pipeline.following.name
