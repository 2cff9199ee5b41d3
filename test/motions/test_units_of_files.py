# SPDX-License-Identifier: Apache-2.0
"""Degrees and millimetres are asked about wherever a motion is read, and never used."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import ros2_bag

import robodyn_ros as rd
from robodyn_ros.control.feedforward_efforts import FeedforwardSettings, with_feedforward_efforts
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.retimed_trajectory import Retiming
from robodyn_ros.control.timed_motion import TimingLimits
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.identification import Recording
from robodyn_ros.motions import read_motion, table_as_csv

# Joint 3 slides.
ARM = rd.RobotModel.from_urdf(Path(__file__).resolve().parents[2] / 'urdf' / 'stanford.urdf')
TIME = np.linspace(0.0, 3.0, 301)
REACH = np.where(ARM.dh.prismatic, 0.3, 1.0)
Q = REACH * np.sin(2.0 * TIME)[:, None]
QD = REACH * 2.0 * np.cos(2.0 * TIME)[:, None]
DEGREES = np.where(ARM.dh.prismatic, 1.0, 180.0 / np.pi)
MILLIMETRES = np.where(ARM.dh.prismatic, 1000.0, 1.0)


def csv(folder: Path, q: Any, qd: Any) -> Path:
    path = folder / 'motion.csv'
    names = [
        f'{name}{suffix}' for suffix in ('', '.velocity', '.effort') for name in ARM.joint_names
    ]
    path.write_text(table_as_csv(names, TIME, q, qd, np.ones_like(q)))
    return path


def bag(folder: Path, q: Any, qd: Any) -> Path:
    states = [
        (time, list(ARM.joint_names), q[k].tolist(), qd[k].tolist(), [1.0] * ARM.n)
        for k, time in enumerate(TIME)
    ]
    return ros2_bag(folder / 'bag', {'/joint_states': states})


def trajectory(q: Any, qd: Any) -> Trajectory:
    nothing: list[list[float]] = [[]] * len(TIME)
    names = ARM.joint_names
    return Trajectory.from_points(names, TIME.tolist(), q.tolist(), qd.tolist(), nothing, nothing)


def retimed(folder: Path, q: Any, qd: Any) -> Any:
    retiming = Retiming(TimingLimits.of(ARM, 1e6, 1e6, None, 0.0))
    return retiming.of(trajectory(q, qd), ReferenceTorque.of(ARM))


def with_effort(folder: Path, q: Any, qd: Any) -> Any:
    many = np.full(ARM.n, 1e9)
    settings = FeedforwardSettings(many, many, np.ones(ARM.n))
    return with_feedforward_efforts(trajectory(q, qd), ReferenceTorque.of(ARM), settings)


READERS: dict[str, Callable[[Path, Any, Any], Any]] = {
    'motion in a CSV file': lambda folder, *given: read_motion(csv(folder, *given), ARM),
    'motion in a bag': lambda folder, *given: read_motion(bag(folder, *given), ARM),
    'recording in a CSV file': lambda folder, *given: Recording.from_csv(csv(folder, *given), ARM),
    'recording in a bag': lambda folder, *given: Recording.from_bag(bag(folder, *given), ARM),
    'trajectory timed anew': retimed,
    'trajectory with efforts': with_effort,
}
OF_FILES = [name for name in READERS if 'trajectory' not in name]


@pytest.mark.parametrize('reader', READERS)
@pytest.mark.parametrize(
    ('factor', 'joint', 'question'),
    [(DEGREES, ARM.joint_names[0], 'in degrees?'), (MILLIMETRES, 'joint3', 'in millimetres?')],
)
def test_positions_in_another_unit_are_asked_about(reader, factor, joint, question, tmp_path):
    with pytest.raises(rd.RobodynError) as caught:
        READERS[reader](tmp_path, factor * Q, factor * QD)
    words = str(caught.value)
    assert words.endswith(question)
    assert f'joint {joint!r}' in words or question == 'in degrees?'
    assert 'within the position limits [' in words


@pytest.mark.parametrize('reader', OF_FILES)
@pytest.mark.parametrize(
    ('factor', 'question'), [(DEGREES, 'in degrees?'), (MILLIMETRES, 'in millimetres?')]
)
def test_velocities_in_another_unit_than_positions_are_asked_about(
    reader, factor, question, tmp_path
):
    with pytest.raises(rd.MalformedData, match='times the change of its position') as caught:
        READERS[reader](tmp_path, Q, factor * QD)
    assert str(caught.value).endswith(question)


@pytest.mark.parametrize('reader', [name for name in OF_FILES if 'motion' in name])
@pytest.mark.parametrize('factor', [0.0, -1.0])
def test_velocities_that_are_not_those_of_the_positions_are_derived(reader, factor, tmp_path):
    small = 0.3
    wrong = small * QD * np.where(np.arange(ARM.n) == 1, factor, 1.0)
    found = READERS[reader](tmp_path, small * Q, wrong)
    np.testing.assert_allclose(found.qd[5:-5], small * QD[5:-5], atol=1e-4)
    (said,) = found.findings
    assert said.element == "joint 'joint2'" and found.derived == 'velocities and accelerations'


def test_poses_at_rest_stay_at_rest(tmp_path):
    path = tmp_path / 'poses.csv'
    names = [f'{name}{suffix}' for suffix in ('', '.velocity') for name in ARM.joint_names]
    path.write_text(table_as_csv(names, 20 * TIME, 0.3 * Q, 0.0 * Q))
    assert not read_motion(path, ARM).qd.any()


@pytest.mark.parametrize('reader', READERS)
def test_a_motion_in_radians_and_metres_is_read(reader, tmp_path):
    small = 0.3  # within the limits of every joint
    READERS[reader](tmp_path, small * Q, small * QD)


def test_of_a_recording_few_impossible_samples_are_dropped_and_counted(tmp_path):
    q = Q.copy()
    q[100:103, 4] = 25.0
    found = Recording.from_csv(csv(tmp_path, q, QD), ARM)
    assert len(found.time) == len(TIME) - 3
    assert [each.code for each in found.findings] == ['corrupt_samples']
    q[200:220, 4] = 25.0
    with pytest.raises(rd.MalformedData, match=r"sample 101, .*'joint5': 25.0 rad; .* degrees\?"):
        Recording.from_csv(csv(tmp_path, q, QD), ARM)
