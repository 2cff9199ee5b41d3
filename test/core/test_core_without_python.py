# SPDX-License-Identifier: Apache-2.0
"""The core in plain C++ programs, under sanitizers: nothing leaves a limit, nothing allocates."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from compiled_arms import public_arm, random_arm
from controller_core import (
    ROOT,
    compiled_program,
    cpp_compiler,
    exported,
    headers,
    installed_core,
    sanitizers,
)
from controllers_package import controllers_package

from robodyn_ros.control.settings import ACTIONS

pytestmark = pytest.mark.slow  # programs are compiled

HERE = Path(__file__).parent


# --- the program -------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp('program')
    options = [*sanitizers(folder, 'address,undefined'), *headers(folder)]
    return compiled_program(HERE / 'random_inputs.cpp', folder, options)


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


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('action', ACTIONS)
def test_no_random_input_leads_past_a_limit_or_allocates(program, library, seed, action):
    assert commands(program, library, 5000, seed, ACTIONS.index(action)) > 1000


@pytest.mark.parametrize('seed', range(5))
def test_a_million_random_inputs_lead_past_no_limit_and_allocate_nothing(program, library, seed):
    assert commands(program, library, 200_000, 100 + seed, 0) > 40_000


@pytest.mark.parametrize('seed', range(4))
def test_an_arm_of_any_kind_is_kept_within_its_limits(program, tmp_path, seed):
    library = exported(random_arm(seed), tmp_path)
    assert commands(program, library, 3000, seed, 0) >= 0


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
    changed = compiled_program(HERE / 'random_inputs.cpp', tmp_path, include)
    found = [run(changed, library, 20_000, seed, 0) for seed in range(3)]
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
#include <robodyn_ros/core/arm_runtime.hpp>
#include <robodyn_ros/core/contact.hpp>
#include <robodyn_ros/core/tip_wrench.hpp>
#include <robodyn_ros/robodyn_model.h>

int main()
{
  robodyn::Settings settings;
  settings.kp = settings.kd = {0.0};
  settings.terms.gravity_factor = {1.0};
  robodyn::LawCoefficients coefficients(1);
  coefficients.set_law(settings);
  std::printf("%g %d\\n", coefficients.gravity(0), ROBODYN_MODEL_ABI);
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
    assert run(build / 'user').stdout == '1 5\n'
