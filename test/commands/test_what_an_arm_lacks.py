# SPDX-License-Identifier: Apache-2.0
"""Arms without masses, effort limits or rotors: every command names them and what gives them."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from command_line import error_of, invoked, json_of
from urdf_parts import joint, link, robot

LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="{}"/>'
BODY = {'center': (0.2, 0.0, 0.1), 'inertia': (0.1, 0.1, 0.1)}


@pytest.fixture
def arm(tmp_path):
    """Return what writes an arm of two joints with these effort limits and this mass of links."""

    def write(efforts=(60.0, 30.0), mass=2.0):
        parts = [link('base')]
        parents = ('base', 'l1')
        for k, (parent, effort) in enumerate(zip(parents, efforts, strict=True), 1):
            body = BODY if mass else {}
            parts.append(link(f'l{k}', mass or None, **body))
            limit = LIMIT.format(effort)
            place = {'axis': (0, 1, 0), 'xyz': (0.3, 0, 0), 'more': limit}
            parts.append(joint(f'j{k}', parent, f'l{k}', 'revolute', **place))
        path = tmp_path / f'arm_{"_".join(map(str, efforts))}_{mass}.urdf'
        path.write_text(robot(*parts))
        return path

    return write


@pytest.fixture
def motion(tmp_path):
    path = tmp_path / 'motion.yaml'
    points = [
        {'positions': [0.4 * k, -0.2 * k], 'time_from_start': {'sec': 2 * k}} for k in range(3)
    ]
    path.write_text(json.dumps({'joint_names': ['j1', 'j2'], 'points': points}))
    return path


@pytest.fixture
def signals_as_before():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_retime_refuses_an_arm_without_masses_unless_accelerations_are_limited(arm, motion):
    for efforts in ((60.0, 30.0), (0.0, 0.0)):
        urdf = arm(efforts, mass=0.0)
        refused = error_of('retime', urdf, motion)
        assert 'no link that moves has a mass' in refused
        assert 'identify' in refused and '--acceleration-limit' in refused
        found = json_of('retime', urdf, motion, '--acceleration-limit', 4)
        # From rest to rest over 0.8 rad at 4 rad/s², beneath 3 rad/s: twice the root of 0.8 / 4.
        assert found['duration'] == pytest.approx(2.0 * np.sqrt(0.8 / 4.0), rel=2e-3)


@pytest.mark.parametrize('command', ['retime', 'torque', 'soft'])
def test_joints_without_effort_limits_are_named_with_the_option(
    arm, motion, command, signals_as_before
):
    if command == 'soft':
        pytest.importorskip('rclpy', reason='needs ROS 2')
    urdf = arm((60.0, 0.0))
    words = (
        ('soft', '--urdf', urdf, '--simulate') if command == 'soft' else (command, urdf, motion)
    )
    refused = error_of(*words)
    assert "no effort limit of 'j2'; needed: " in refused
    assert '--effort-limit JOINT=LIMIT' in refused
    if command == 'torque':
        assert 'needed: --error-bound, or' in refused
        assert invoked(*words, '--error-bound', 0.1).exit_code == 0


def test_limits_of_the_option_stand_for_those_that_are_missing(arm, motion, tmp_path):
    urdf = arm((60.0, 0.0))
    given = ('--effort-limit', 'j2=30')
    assert json_of('retime', urdf, motion, *given) == json_of('retime', arm(), motion)
    assert json_of('torque', urdf, motion, *given) == json_of('torque', arm(), motion)
    beyond = error_of('torque', urdf, motion, '--effort-limit', 'j2=0.5')
    assert "'j2' torque at" in beyond
    paths = [tmp_path / f'{name}.csv' for name in ('option', 'urdf')]
    motions = ('--duration', 4, '--harmonics', 2, '--no-dry-run')
    by_option = invoked('excite', urdf, '-o', paths[0], *motions, *given)
    by_urdf = invoked('excite', arm(), '-o', paths[1], *motions)
    assert by_option.exit_code == by_urdf.exit_code == 0
    assert paths[0].read_text() == paths[1].read_text()


def test_excite_and_check_say_what_gives_missing_limits_once(arm, tmp_path):
    urdf = arm((0.0, 0.0))
    made = invoked(
        'excite', urdf, '-o', tmp_path / 'm.csv', '--duration', 4, '--harmonics', 2, '--no-dry-run'
    )
    assert made.exit_code == 0
    for said in (made.stderr, invoked('check', urdf).stdout):
        assert said.count('--effort-limit JOINT=LIMIT') == 1
        assert "no effort limit of 'j1', 'j2'" in said


def test_soft_gives_its_node_the_limits(arm, monkeypatch, signals_as_before):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    started = []
    monkeypatch.setattr(os, 'execv', lambda path, arguments: started.append(arguments))
    urdf = arm((60.0, 0.0))
    for command in ('soft', 'float'):
        invoked(command, '--urdf', urdf, '--effort-limit', 'j2=30')
        assert 'effort_limits:=[60.0, 30.0]' in ' '.join(started.pop())
    # The node's own parameter may give them where no number of the command needs them.
    invoked('float', '--urdf', urdf, '--', '-p', 'effort_limits:=[60.0, 30.0]')
    assert 'effort_limits:=[60.0, 30.0]' in ' '.join(started.pop())


@pytest.mark.parametrize('command', ['demo', 'identify-demo', 'soft', 'float'])
def test_what_simulates_an_arm_without_masses_refuses_it_before_it_starts(
    arm, command, tmp_path, monkeypatch, signals_as_before
):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('subprocess.Popen', None)
    simulate = [] if 'demo' in command else ['--simulate']
    refused = error_of(command, '--urdf', arm(mass=0.0), *simulate)
    assert 'no link that moves has a mass; needed: masses in the URDF' in refused


# --- one number for all joints -------------------------------------------------------------------


def test_one_number_lowers_limits_and_raises_none(arm, motion):
    plain = json_of('retime', arm(), motion)
    assert json_of('retime', arm(), motion, '--effort-limit', 300) == plain
    assert json_of('retime', arm(), motion, '--velocity-limit', 300) == plain
    lowered = json_of('retime', arm((40.0, 30.0)), motion)
    assert json_of('retime', arm(), motion, '--effort-limit', 40) == lowered != plain
    raised = json_of('retime', arm(), motion, '--effort-limit', 'j1=300')
    assert raised['duration'] < plain['duration']
    each = ('--effort-limit', 300, '--effort-limit', 30)
    assert json_of('retime', arm(), motion, *each) == raised


@pytest.mark.parametrize('limit', [0, -1, 'nan', 'j1=0'])
def test_a_limit_that_is_not_positive_is_refused(arm, motion, limit):
    assert '--effort-limit: each more than zero' in error_of(
        'retime', arm(), motion, '--effort-limit', limit
    )


# --- rotors --------------------------------------------------------------------------------------


def test_rotors_are_mentioned_once_where_torque_times_a_motion(arm, motion):
    said = invoked('retime', arm(), motion).stderr
    assert said.count('--rotor-inertia JOINT=INERTIA') == 1
    by_speed = invoked('retime', arm(), motion, '--acceleration-limit', 0.1)
    known = invoked('retime', arm(), motion, '--rotor-inertia', 'j1=0.5')
    for answer in (by_speed, known):
        assert answer.exit_code == 0 and 'rotor' not in answer.stderr
