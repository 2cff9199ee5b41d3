# SPDX-License-Identifier: Apache-2.0
"""Motions out of CSV files and bags: what is there is read, what is missing derived or named."""

import numpy as np
import pytest
from bags import ros2_bag

from robodyn_ros.errors import InvalidArgument, MalformedData, UnreadableSource
from robodyn_ros.motions import LARGEST_CSV, MotionSamples, read_motion, table_as_csv
from robodyn_ros.motions.csv_text import motion_of_csv

JOINTS = ('shoulder', 'elbow, "left"')
TIME = np.linspace(0, 2, 401)
PHASE = np.array([0.0, 1.0])


def swing(time):
    angle = 2 * time[:, None] + PHASE
    return np.sin(angle), 2 * np.cos(angle), -4 * np.sin(angle)


def csv_of(*suffixes):
    names = [f'{joint}{suffix}' for suffix in suffixes for joint in JOINTS]
    return table_as_csv(names, TIME, *swing(TIME)[: len(suffixes)])


def test_positions_alone_are_derived_by_splines():
    motion = motion_of_csv(csv_of(''), JOINTS)
    q, qd, qdd = swing(TIME)
    np.testing.assert_array_equal(motion.q, q)
    np.testing.assert_allclose(motion.qd, qd, atol=1e-5)
    np.testing.assert_allclose(motion.qdd, qdd, atol=2e-3)
    assert motion.derived == 'velocities and accelerations'


def test_given_velocities_and_accelerations_are_taken():
    motion = motion_of_csv(csv_of('', '.velocity'), JOINTS)
    np.testing.assert_array_equal(motion.qd, swing(TIME)[1])
    np.testing.assert_allclose(motion.qdd, swing(TIME)[2], atol=1e-4)
    assert motion.derived == 'accelerations'
    motion = motion_of_csv(csv_of('', '.velocity', '.acceleration'), JOINTS)
    np.testing.assert_array_equal(motion.qdd, swing(TIME)[2])
    assert motion.derived == ''


def test_columns_stand_in_any_order_and_others_are_passed_over():
    text = 'note,b,time,a\nstart,2,0,1\nend,4,1,3\n'
    motion = motion_of_csv(text, ('a', 'b'))
    np.testing.assert_array_equal(motion.q, [[1, 2], [3, 4]])
    np.testing.assert_allclose(motion.qd, [[2, 2], [2, 2]])


def test_without_names_columns_are_time_and_positions():
    motion = motion_of_csv('0,1,2\n1,3,4\n', JOINTS)
    np.testing.assert_array_equal(motion.q, [[1, 2], [3, 4]])


def test_one_sample_is_a_rest():
    motion = motion_of_csv('0,1,2\n', JOINTS)
    assert not motion.qd.any()
    assert not motion.qdd.any()


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('', 'there is no line in it'),
        ('time,a\n', 'no samples'),
        ('time,b\n0,1\n', "column 'a'.*missing"),
        ('time,a,a\n0,1,1\n', "column 'a'.*repeated"),
        ('time,a\n0\n', 'line 2.*1 fields'),
        ('time,a\n0,one\n', "line 2, column 'a'.*one"),
        ('time,a\n0,nan\n', "line 2, column 'a'.*finite"),
        ('time,a\n0,1\n0,2\n', 'time of sample 2'),
        ('0,1,2\n', '3 numbers and no names'),
        ('time,a\n0,' + 200_000 * '1', 'field larger than field limit'),
        ('time,a\n0,1e308\n1e-300,-1e308\n2e-300,1e308', 'whose slopes are finite'),
        ('time,a' + 100_000 * ',b' + 100_000 * '\n0', 'line 2.*1 fields'),  # 80 GB as a table
    ],
    ids=lambda value: repr(value[:30]),
)
def test_malformed_text_is_refused_by_line_and_column(text, named):
    with pytest.raises(MalformedData, match=named):
        motion_of_csv(text, ('a',))


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UnreadableSource, match='nowhere'):
        read_motion(tmp_path / 'nowhere.csv', JOINTS)


def test_low_pass_takes_noise_out_of_accelerations():
    generator = np.random.default_rng(3)
    time = np.sort(TIME + generator.uniform(-1e-3, 1e-3, len(TIME)))
    q, _, qdd = swing(time)
    noisy = MotionSamples.from_samples(time, q + generator.normal(scale=1e-4, size=q.shape))
    smooth = noisy.low_passed(5.0)
    inner = slice(60, -60)  # the filter rings at the ends
    assert np.abs(noisy.qdd - qdd)[inner].max() > 50
    assert np.abs(smooth.qdd - swing(smooth.time)[2])[inner].max() < 0.4
    with pytest.raises(InvalidArgument, match='cutoff'):
        noisy.low_passed(1000.0)
    with pytest.raises(MalformedData, match='to filter'):
        MotionSamples.from_samples(time[:5], q[:5]).low_passed(5.0)


@pytest.fixture
def bag(tmp_path):
    """Write joint states in two parts, each with a gripper."""
    states = [
        (time + 100, [joint, 'gripper'], [q[k], 0.0], [qd[k], 0.0], [])
        for time, q, qd in zip(TIME, *swing(TIME)[:2])
        for k, joint in enumerate(JOINTS)
    ]
    return ros2_bag(tmp_path / 'bag', {'/joint_states': states})


def test_joint_states_of_a_bag_are_read_without_ros(bag):
    motion = read_motion(bag, JOINTS, topic='/joint_states')
    q, qd, _ = swing(TIME)
    np.testing.assert_allclose(motion.time, TIME, atol=1e-8)
    np.testing.assert_array_equal(motion.q, q)
    np.testing.assert_array_equal(motion.qd, qd)
    assert motion.derived == 'accelerations'
    np.testing.assert_array_equal(read_motion(next(bag.glob('*.mcap')), JOINTS).q, q)


def test_bag_without_the_topic_or_the_joints_is_refused(bag, tmp_path):
    with pytest.raises(MalformedData, match="topic: '/states'.*'/joint_states'"):
        read_motion(bag, JOINTS, topic='/states')
    with pytest.raises(MalformedData, match='wrist'):
        read_motion(bag, ('wrist',))
    tmp_path.joinpath('broken.mcap').write_bytes(b'no bag')
    with pytest.raises(UnreadableSource, match='broken.mcap'):
        read_motion(tmp_path / 'broken.mcap', JOINTS)


def test_csv_that_is_too_large_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / 'motion.csv'
    with path.open('wb') as file:
        file.truncate(100 * LARGEST_CSV)  # sparse: it has no blocks
    with pytest.raises(UnreadableSource, match=f'over {LARGEST_CSV} bytes'):
        read_motion(path, ['a'])
