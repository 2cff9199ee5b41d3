# SPDX-License-Identifier: Apache-2.0
"""When a torque is a contact, at which joint, on which link, and when it is over."""

from __future__ import annotations

import numpy as np
import pytest
from robots import public_urdf

from robodyn_ros import RobotModel
from robodyn_ros.control.contact import ContactDetector, ContactThresholds, moved_links
from robodyn_ros.errors import InvalidArgument

NAMES, LINKS = ('a', 'b', 'c'), ('upper', 'fore', 'hand')
MOVING, STANDING = np.array([4.0, 3.0, 1.0]), np.array([10.0, 8.0, 2.0])
FAST = np.full(3, 0.5)


class Detector(ContactDetector):
    """Fed at 100 Hz, keeps what it said."""

    def __init__(self, dwell=0.02):
        super().__init__(ContactThresholds(MOVING, STANDING), NAMES, LINKS, 3 * (False,), dwell)
        self.now, self.said = 10.0, []

    def feed(self, torque, velocity=FAST, samples=1):
        for _ in range(samples):
            self.now = round(self.now + 0.01, 6)
            said = self.update(np.array(velocity), np.array(torque, dtype=float), self.now)
            if said is not None:
                self.said.append(said)
        return self


def moving(**options):
    return Detector(**options).feed([0, 0, 0], samples=40)


def test_a_contact_says_where_it_is_by_how_much_and_since_when():
    detector = moving().feed([-4.5, 0, 0], samples=3)
    (said,) = detector.said
    assert (said.joint, said.link, said.is_over) == ('a', 'upper', False)
    assert (said.torque, said.threshold) == (-4.5, 4.0)
    assert said.time - said.began == pytest.approx(0.02)
    assert detector.count == 1


def test_a_joint_that_stands_has_its_own_threshold():
    still = Detector().feed([0, 0, 0], [0, 0, 0], samples=40)
    assert not still.feed([9.0, 7.0, 1.9], [0, 0, 0], samples=50).said
    still = Detector().feed([0, 0, 0], [0, 0, 0], samples=40)
    assert still.feed([11.0, 0, 0], [0, 0, 0], samples=3).said


def test_of_a_standing_joint_the_change_counts():
    # A drive that winds up slowly against stiction, far beyond the threshold in the end.
    still = Detector().feed([0, 0, 0], [0, 0, 0], samples=40)
    for k in range(2000):
        still.feed([0.01 * k, 0, 0], [0, 0, 0])
    assert not still.said
    # A push on top of it is one.
    assert still.feed([31.0, 0, 0], [0, 0, 0], samples=5).said


def test_a_contact_that_lasts_on_a_standing_joint_is_over_after_some_seconds():
    still = Detector().feed([0, 0, 0], [0, 0, 0], samples=40)
    still.feed([20.0, 0, 0], [0, 0, 0], samples=300)
    assert [said.is_over for said in still.said] == [False]
    still.feed([20.0, 0, 0], [0, 0, 0], samples=700)
    assert [said.is_over for said in still.said] == [False, True]
    # What is not taken for stiction falls with 5 s to 0.7 times the threshold of 10.
    begin, end = still.said
    assert end.time - begin.began == pytest.approx(5.0 * np.log(20.0 / 7.0), abs=0.15)


def test_stiction_is_forgotten_when_a_joint_moves():
    still = Detector().feed([9.0, 0, 0], [0, 0, 0], samples=500)
    still.feed([0, 0, 0], samples=100)
    # As long as the old stiction counted, this would be a change of 18.
    assert not still.feed([-9.0, 0, 0], [0, 0, 0], samples=100).said


def test_a_joint_that_turned_round_has_the_threshold_of_one_that_stands_for_a_while():
    detector = moving().feed([0, 0, 0], -FAST)
    late = 30  # 0.3 s
    assert not detector.feed([5.0, 0, 0], -FAST, samples=late - 1).said
    assert detector.feed([5.0, 0, 0], -FAST, samples=5).said


def test_joints_are_judged_one_by_one():
    # Joint a stands, joint b moves.
    velocity = [0.0, 0.5, 0.5]
    detector = Detector().feed([0, 0, 0], velocity, samples=40)
    assert not detector.feed([9.0, 2.0, 0], velocity, samples=20).said
    assert detector.feed([9.0, 3.5, 0], velocity, samples=3).said[0].joint == 'b'


def test_the_joint_is_the_clearest_and_the_link_that_of_the_outermost_that_shows_it():
    (said,) = moving().feed([12.0, 4.0, 0.6], samples=3).said
    assert (said.joint, said.link) == ('a', 'hand')
    (said,) = moving().feed([12.0, 4.0, 0.4], samples=3).said
    assert (said.joint, said.link) == ('a', 'fore')


def test_a_time_that_goes_back_begins_anew():
    detector = moving().feed([5.0, 0, 0], samples=10)
    detector.now -= 5.0
    detector.feed([0, 0, 0])
    assert detector.contact is None
    assert not detector.feed([5.0, 0, 0], samples=20).said[1:]  # just stood, as far as it knows


@pytest.mark.parametrize('value', [0.0, -1.0, np.nan, np.inf])
def test_thresholds_are_positive(value):
    with pytest.raises(InvalidArgument):
        ContactThresholds(np.array([1.0, value]), np.ones(2))


def test_thresholds_are_of_one_shape():
    with pytest.raises(InvalidArgument):
        ContactThresholds(np.ones(3), np.ones(2))


def test_the_link_of_a_joint_is_the_child_in_the_description():
    model = RobotModel.from_urdf(
        public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'
    )
    assert moved_links(model) == tuple(f'panda_link{i}' for i in range(1, 8))
