# SPDX-License-Identifier: Apache-2.0
"""Which tip is taken where none is given, and what is said where one has to be given."""

import pytest
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.description.chain import Chain


def between(kind, parent, child, z=0.0, more=''):
    return joint(f'{parent}-{child}', parent, child, kind, xyz=(0, 0, z), more=more)


def arm(*parts):
    links = link('base') + link('l1') + link('l2')
    joints = between('continuous', 'base', 'l1') + between('revolute', 'l1', 'l2', 1.0)
    return robot(links, joints, *parts)


def fixed(parent, *children, z=0.1):
    return ''.join(link(child) + between('fixed', parent, child, z) for child in children)


FINGERS = (
    fixed('l2', 'gripper'),
    link('left') + between('prismatic', 'gripper', 'left'),
    link('right'),
    between('prismatic', 'gripper', 'right', more='<mimic joint="gripper-left"/>'),
)


@pytest.mark.parametrize(
    ('text', 'tip'),
    [
        (arm(fixed('l2', 'camera', 'tool0', 'flange')), 'tool0'),
        # A link on the way to another is no end, whatever its name.
        (arm(fixed('l2', 'arm_flange'), fixed('arm_flange', 'cover')), 'cover'),
        (arm(fixed('l2', 'cover'), fixed('cover', 'far'), fixed('l2', 'arm_tcp')), 'arm_tcp'),
        (arm(fixed('l2', 'cover'), fixed('cover', 'far'), fixed('l2', 'near')), 'far'),
        (arm(fixed('l2', 'near'), fixed('l2', 'far', z=0.2)), 'far'),
        (arm(fixed('l2', 'toolbox', 'ee_link')), 'ee_link'),
        (arm(fixed('base', 'world'), fixed('l2', 'a')), 'a'),
    ],
)
def test_of_links_that_move_with_the_same_joints_one_is_taken(text, tip):
    model = rd.RobotModel.from_urdf_text(text)
    assert model.tip_link == tip
    assert model.n == 2


def test_the_choice_is_a_finding_that_names_the_others():
    text = arm(fixed('l2', 'camera', 'tool0', 'flange'))
    (finding,) = [f for f in Chain.from_urdf_text(text).findings if f.code == 'chosen_tip']
    assert finding.element == "link 'tool0'"
    assert finding.value == ('camera', 'flange')
    named = rd.RobotModel.from_urdf_text(text, tip_link='camera')
    assert 'chosen_tip' not in {f.code for f in named.findings}
    assert 'chosen_tip' not in {f.code for f in rd.RobotModel.from_urdf_text(arm()).findings}


def refusal(text):
    with pytest.raises(errors.NoChain) as caught:
        rd.RobotModel.from_urdf_text(text)
    return str(caught.value).splitlines()[1:]


def test_candidates_stand_one_a_line_with_their_joints():
    assert refusal(arm(fixed('l1', 'camera'))) == [
        "  'camera': 1 joint, 'base-l1'",
        "  'l2': 2 joints, 'base-l1', 'l1-l2'",
    ]


def test_the_link_that_carries_the_fingers_is_a_candidate():
    lines = refusal(arm(*FINGERS))
    assert lines == [
        "  'gripper': 2 joints, 'base-l1', 'l1-l2', before the ways part",
        "  'left': 3 joints, 'base-l1', 'l1-l2', 'gripper-left'",
        "  'right': 3 joints, 'base-l1', 'l1-l2', 'gripper-right'; 'gripper-right' mimics another",
    ]
    assert rd.RobotModel.from_urdf_text(arm(*FINGERS), tip_link='gripper').n == 2


def test_links_with_the_same_joints_share_a_line():
    lines = refusal(arm(*FINGERS, fixed('l2', 'camera', 'tool0')))
    assert lines[0] == "  'tool0': 2 joints, 'base-l1', 'l1-l2'"
    assert len(lines) == 3


def test_long_lists_are_cut():
    fans = [link(f'f{k}') + between('continuous', 'l2', f'f{k}') for k in range(40)]
    lines = refusal(arm(*fans))
    assert len(lines) == 21
    assert lines[-1] == '  and 21 more'
