# SPDX-License-Identifier: Apache-2.0
"""Stamps of a motion in another unit are asked about; points that are far apart are not."""

from pathlib import Path

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros.motions import read_motion, table_as_csv

JOINTS = ('a', 'b')
UNITS = {'ms': 1e3, 'us': 1e6, 'ns': 1e9}
SLIDING = rd.RobotModel.from_urdf(Path(__file__).resolve().parents[2] / 'urdf' / 'stanford.urdf')


def file(folder, time, q, qd=None, names=JOINTS):
    path = folder / 'motion.csv'
    velocities = () if qd is None else (qd,)
    columns = [*names, *(f'{name}.velocity' for name in names if qd is not None)]
    path.write_text(table_as_csv(columns, np.asarray(time), np.asarray(q), *velocities))
    return path


@pytest.mark.parametrize('first', [0.0, 1.7e9], ids=['from zero', 'since 1970'])
@pytest.mark.parametrize('rate', [50.0, 1000.0])
@pytest.mark.parametrize('given', ['positions', 'noisy positions', 'velocities', 'zeros'])
@pytest.mark.parametrize('unit', UNITS)
def test_samples_in_another_unit_are_asked_about(tmp_path, unit, given, rate, first):
    time = np.arange(0.0, 4.0, 1.0 / rate)
    q = np.sin(2.0 * time)[:, None] * [1.0, 0.3]
    qd = {'velocities': 2.0 * np.cos(2.0 * time)[:, None] * [1.0, 0.3], 'zeros': 0.0 * q}
    if given == 'noisy positions':
        q = np.round(q, 3) + np.random.default_rng(1).normal(0.0, 1e-4, q.shape)
    path = file(tmp_path, UNITS[unit] * (first + time), q, qd.get(given))
    with pytest.raises(rd.MalformedData, match=rf'time: .* in {unit}\?'):
        read_motion(path, JOINTS)


@pytest.mark.parametrize('points', [2, 5])
def test_few_points_whose_stamps_are_nanoseconds_are_asked_about(tmp_path, points):
    time = 1e9 * np.arange(points)
    with pytest.raises(rd.MalformedData, match=r'in ns\?'):
        read_motion(file(tmp_path, time, np.eye(points, 2)), JOINTS)


def test_velocities_show_the_clock_of_few_points(tmp_path):
    time = np.linspace(0.0, 3.0, 7)
    q, qd = np.sin(time)[:, None] * [1.0, 0.5], np.cos(time)[:, None] * [1.0, 0.5]
    with pytest.raises(rd.MalformedData, match=r'as velocities are per s; in ms\?'):
        read_motion(file(tmp_path, 1e3 * time, q, qd), JOINTS)
    assert len(read_motion(file(tmp_path, 100.0 * time, q, 0.01 * qd), JOINTS).time) == 7


GENERATOR = np.random.default_rng(2)
PLANNED = {
    'two points an hour apart': ([0.0, 3600.0], [[0.0, 0.0], [0.1, -0.1]]),
    'one point': ([0.0], [[0.1, 0.2]]),
    'three points a day apart': ([0.0, 86400.0, 172800.0], [[0.0, 0.0], [0.1, -0.1], [0.0, 0.0]]),
    'waypoints seconds apart': (3.0 * np.arange(30), GENERATOR.uniform(-1.0, 1.0, (30, 2))),
    'poses minutes apart': (300.0 * np.arange(200), GENERATOR.uniform(-0.3, 0.3, (200, 2))),
    'poses one after the other': (
        600.0 * np.arange(128),
        np.tile([[0.0, 0.0], [0.3, 0.0], [0.3, 0.3], [0.0, 0.3]], (32, 1)),
    ),
    'points that are held': (60.0 * np.arange(60), np.repeat(np.eye(30, 2), 2, axis=0)),
    'a slow sweep': (np.arange(200.0), np.linspace(0.0, [3.0, 1.0], 200)),
    'an arm that stands': (60.0 * np.arange(500), np.full((500, 2), 0.3)),
}


@pytest.mark.parametrize('case', PLANNED)
def test_points_that_are_far_apart_are_read(tmp_path, case):
    time, q = PLANNED[case]
    np.testing.assert_array_equal(read_motion(file(tmp_path, time, q), JOINTS).q, q)


def test_velocities_prove_that_a_slow_motion_is_in_seconds(tmp_path):
    time = 100.0 * np.arange(400.0)
    q = np.sin(1e-3 * time)[:, None] * [1.0, 0.5]
    with pytest.raises(rd.MalformedData, match=r'in ms\?'):
        read_motion(file(tmp_path, time, q), JOINTS)
    qd = 1e-3 * np.cos(1e-3 * time)[:, None] * [1.0, 0.5]
    assert len(read_motion(file(tmp_path, time, q, qd), JOINTS).time) == 400


def test_millimetres_of_a_joint_that_slides_are_no_milliseconds(tmp_path):
    time = np.linspace(0.0, 3.0, 301)
    names, slides = SLIDING.joint_names, SLIDING.dh.prismatic
    q = 0.1 * np.sin(2.0 * time)[:, None] * slides
    qd = 0.2 * np.cos(2.0 * time)[:, None] * slides
    with pytest.raises(rd.MalformedData, match=r'in millimetres\?'):
        read_motion(file(tmp_path, time, q, 1e3 * qd, names), SLIDING)
    with pytest.raises(rd.MalformedData, match=r'in ms\?'):
        read_motion(file(tmp_path, 1e3 * time, q, qd, names), SLIDING)
