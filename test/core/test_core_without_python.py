# SPDX-License-Identifier: Apache-2.0
"""The core in plain C++ programs, under sanitizers: nothing leaves a limit, nothing allocates."""

import os
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from command_streams import Driver, replayed
from compiled_arms import public_arm, random_arm
from controller_core import (
    ROOT,
    compiled_program,
    cpp_compiler,
    exported,
    headers,
    installed_core,
    sanitizers,
    setting_numbers,
)
from controllers_package import controllers_package
from event_sequences import EventSequence, arms, drawn

from robodyn_ros import Payload
from robodyn_ros.control import command_pipeline
from robodyn_ros.control.command_pipeline import core_settings
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.load import Load
from robodyn_ros.control.settings import ACTIONS, CONTACT_ACTIONS
from robodyn_ros.errors import RobodynError

pytestmark = pytest.mark.slow  # programs are compiled

HERE = Path(__file__).parent
# As replay.cpp numbers them.
EVENTS = (
    *('enable', 'disable', 'change_settings', 'change_load', 'follow', 'cancel'),
    *('begin_stop', 'react_to_contact', 'continue_from', 'sent', 'step', 'watchdog'),
    'stop_command',
)


# --- recording what Python asks of the core ----------------------------------------------------


def motion_numbers(motion: Any) -> list[Any]:
    given = (motion.knots, motion.coefficients, motion.efforts, motion.start, motion.end)
    before = motion.before
    rest = [0.0] if before is None else [1.0, *motion_numbers(before)]
    return [len(motion.knots), *given, *rest]


def load_numbers(load: Load) -> list[Any]:
    payload = load.payloads[0] if load.payloads else Payload(0.0)
    inertia = np.asarray(payload.inertia)[np.triu_indices(3)]
    return [payload.mass, payload.center_of_mass, inertia, load.gravity]


class Recorder:
    """The core's pipeline for Python, which notes all that is asked of it as numbers."""

    def __init__(self, arm: Any, settings: Any) -> None:
        self.numbers: list[Any] = [self.settings]
        self._core = CORE_PIPELINE(arm, settings)
        RECORDERS.append(self)

    settings: np.ndarray  # that were made for the core last
    load: Load  # that is to be taken next

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._core, name)
        if name not in EVENTS:
            return value

        def call(*given: Any, **named: Any) -> Any:
            self.numbers += [EVENTS.index(name), *self._noted(name, [*given, *named.values()])]
            result = value(*given, **named)
            if name in ('step', 'watchdog', 'stop_command'):
                self.numbers += [0.0] if result is None else [1.0, result[0]]
            return result

        return call

    def _noted(self, name: str, given: list[Any]) -> list[Any]:
        if name == 'change_settings':
            return [self.settings]
        if name == 'change_load':
            return [*load_numbers(self.load), given[1]]
        if name == 'follow':
            return motion_numbers(given[0])
        if name == 'react_to_contact':
            return [CONTACT_ACTIONS.index(given[0].name)]
        if name in ('step', 'watchdog'):
            return [*given[:-1], *([0.0] if given[-1] is None else [1.0, given[-1]])]
        return given


CORE_PIPELINE = core.Pipeline
RECORDERS: list[Recorder] = []


class RecordedDriver(Driver):
    """Notes the load before it is taken."""

    def load(self, now, change):
        with suppress(RobodynError):
            self.pipeline._core.load = self.stack.load.changed(change, self.stack.arm)
        return super().load(now, change)


def noted_settings(*given: Any) -> Any:
    Recorder.settings = setting_numbers(*given)
    return core_settings(*given)


def recorded(sequence: EventSequence, path: Path) -> int:
    """Write what a sequence asks of the core, and return how many commands there were."""
    RECORDERS.clear()
    with (
        mock.patch.object(core, 'Pipeline', Recorder),
        mock.patch.object(command_pipeline, 'core_settings', noted_settings),
    ):
        stream = replayed(sequence, RecordedDriver(sequence, 'compiled'))
    (recorder,) = RECORDERS
    np.concatenate([np.ravel(each) for each in recorder.numbers]).astype(float).tofile(path)
    return int(stream.has_command.sum())


# --- the program -------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp('program')
    options = [*sanitizers(folder, 'address,undefined'), *headers(folder)]
    return compiled_program(HERE / 'replay.cpp', folder, options)


@cache
def panda():
    return public_arm('panda')


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    return exported(panda(), tmp_path_factory.mktemp('library'))


def run(program, *words):
    return subprocess.run(
        [str(word) for word in (program, *words)], capture_output=True, text=True, timeout=600
    )


def commands(program, *words):
    """Return how many commands there were; all were right."""
    done = run(program, *words)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize('name', arms())
def test_drawn_sequences_command_the_same_without_python(program, tmp_path, name):
    seeds = range(50)
    files = [tmp_path / f'{seed}.events' for seed in seeds]
    expected = sum(recorded(drawn(name, seed), file) for seed, file in zip(seeds, files))
    library = exported(arms()[name].model, tmp_path)
    assert commands(program, library, 'events', *files) == expected > 0


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('action', ACTIONS)
def test_no_random_input_leads_past_a_limit_or_allocates(program, library, seed, action):
    assert commands(program, library, 'random', 5000, seed, ACTIONS.index(action)) > 1000


@pytest.mark.parametrize('seed', range(5))
def test_a_million_random_inputs_lead_past_no_limit_and_allocate_nothing(program, library, seed):
    assert commands(program, library, 'random', 200_000, 100 + seed, 0) > 40_000


@pytest.mark.parametrize('seed', range(4))
def test_an_arm_of_any_kind_is_kept_within_its_limits(program, tmp_path, seed):
    library = exported(random_arm(seed), tmp_path)
    assert commands(program, library, 'random', 3000, seed, 0) >= 0


def test_no_bytes_of_joint_states_are_read_behind_their_end_or_allocate(tmp_path):
    options = [*sanitizers(tmp_path, 'address,undefined'), *headers(tmp_path)]
    program = compiled_program(HERE / 'joint_states.cpp', tmp_path, options)
    assert commands(program) > 10_000


@pytest.mark.parametrize(
    ('header', 'right', 'wrong', 'said'),
    [
        ('torque.hpp', 'clamped(allowed, -largest, largest)', 'torque[i]', 'beyond the'),
        ('torque.hpp', 'allowed = clamped(clipped, last - step, last + step)', '', 'rate limit'),
        ('torque.hpp', 'has_torque_ = true;', 'has_torque_ = !Vector(1).empty();', 'allocated'),
    ],
)
def test_a_core_that_leaves_a_limit_or_allocates_is_noticed(
    tmp_path, library, header, right, wrong, said
):
    include = headers(tmp_path)
    core_headers = tmp_path / 'include' / 'robodyn_ros' / 'core'
    core_headers.unlink()
    shutil.copytree(ROOT / 'robodyn_ros' / 'control' / 'core', core_headers)
    text = (core_headers / header).read_text()
    assert right in text
    (core_headers / header).write_text(text.replace(right, wrong))
    changed = compiled_program(HERE / 'replay.cpp', tmp_path, include)
    found = [run(changed, library, 'random', 20_000, seed, 0) for seed in range(3)]
    assert any(done.returncode != 0 and said in done.stderr for done in found)


# --- what threads hand to one another ----------------------------------------------------------


def test_mailboxes_are_free_of_races(tmp_path):
    options = [*sanitizers(tmp_path, 'thread'), *headers(tmp_path)]
    program = compiled_program(HERE / 'mailboxes.cpp', tmp_path, options)
    done = run(program)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_mailbox_with_a_race_is_noticed(tmp_path):
    options = [*sanitizers(tmp_path, 'thread'), *headers(tmp_path)]
    text = (controllers_package() / 'include/robodyn_controllers/mailbox.hpp').read_text()
    right = 'written_ = between_.exchange(written_ | kNew) & kIndex;'
    assert right in text
    changed = tmp_path / 'changed' / 'robodyn_controllers'
    changed.mkdir(parents=True)
    wrong = right.replace('| kNew)', '| kNew, std::memory_order_relaxed)')  # orders nothing
    (changed / 'mailbox.hpp').write_text(text.replace(right, wrong))
    program = compiled_program(HERE / 'mailboxes.cpp', tmp_path, [f'-I{changed.parent}', *options])
    done = run(program)
    assert done.returncode != 0 and 'data race' in done.stderr


# --- the installed core ------------------------------------------------------------------------

USER = """
#include <cstdio>
#include <robodyn_ros/core/command_pipeline.hpp>
#include <robodyn_ros/core/contact.hpp>
#include <robodyn_ros/core/tip_wrench.hpp>
#include <robodyn_ros/robodyn_model.h>

int main()
{
  robodyn::Settings settings;
  settings.kp = settings.kd = {0.0};
  robodyn::LawCoefficients coefficients(1);
  coefficients.set_law(settings);
  std::printf("%g %d\\n", coefficients.gravity(), ROBODYN_MODEL_ABI);
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(user CXX)
find_package(robodyn_ros REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user robodyn_ros::core)
if(NOT EXISTS "${robodyn_ros_PARAMETERS}/command_pipeline.yaml")
  message(FATAL_ERROR "no parameters")
endif()
"""


def test_a_project_finds_the_installed_core(tmp_path):
    cpp_compiler()
    cmake = shutil.which('cmake')
    if cmake is None:
        pytest.skip('there is no cmake')
    installed, source, build = tmp_path / 'installed', tmp_path / 'source', tmp_path / 'build'
    installed_core(installed)
    source.mkdir()
    (source / 'user.cpp').write_text(USER)
    (source / 'CMakeLists.txt').write_text(PROJECT)
    # Not from the source tree, nor from another installation.
    configure = [cmake, '-S', source, '-B', build, f'-DCMAKE_PREFIX_PATH={installed}']
    environment = {'PATH': os.environ['PATH']}
    for command in (configure, [cmake, '--build', build]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert str(installed) in (build / 'CMakeCache.txt').read_text()
    assert run(build / 'user').stdout == '1 4\n'
