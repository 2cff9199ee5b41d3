# SPDX-License-Identifier: Apache-2.0
"""Which tip is taken where none is given, and what is said where one has to be given."""

import pytest

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.description.chain import Chain


def link(*names):
    return ''.join(f'<link name="{name}"/>' for name in names)


def joint(kind, parent, child, z=0.0, mimic=''):
    return (
        f'<joint name="{parent}-{child}" type="{kind}"><origin xyz="0 0 {z}"/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>{mimic}</joint>'
    )


def robot(*parts):
    arm = link('base', 'l1', 'l2') + joint('continuous', 'base', 'l1')
    return f'<robot name="r">{arm}{joint("revolute", "l1", "l2", 1.0)}{"".join(parts)}</robot>'


def fixed(parent, *children, z=0.1):
    return link(*children) + ''.join(joint('fixed', parent, child, z) for child in children)


FINGERS = (
    fixed('l2', 'gripper'),
    link('left', 'right'),
    joint('prismatic', 'gripper', 'left'),
    joint('prismatic', 'gripper', 'right', mimic='<mimic joint="gripper-left"/>'),
)


@pytest.mark.parametrize(
    ('text', 'tip'),
    [
        (robot(fixed('l2', 'camera', 'tool0', 'flange')), 'tool0'),
        # A link on the way to another is no end, whatever its name.
        (robot(fixed('l2', 'arm_flange'), fixed('arm_flange', 'cover')), 'cover'),
        (robot(fixed('l2', 'cover'), fixed('cover', 'far'), fixed('l2', 'arm_tcp')), 'arm_tcp'),
        (robot(fixed('l2', 'cover'), fixed('cover', 'far'), fixed('l2', 'near')), 'far'),
        (robot(fixed('l2', 'near'), fixed('l2', 'far', z=0.2)), 'far'),
        (robot(fixed('l2', 'toolbox', 'ee_link')), 'ee_link'),
        (robot(fixed('base', 'world'), fixed('l2', 'a')), 'a'),
    ],
)
def test_of_links_that_move_with_the_same_joints_one_is_taken(text, tip):
    model = rd.RobotModel.from_urdf_text(text)
    assert model.tip_link == tip
    assert model.n == 2


def test_the_choice_is_a_finding_that_names_the_others():
    text = robot(fixed('l2', 'camera', 'tool0', 'flange'))
    (finding,) = [f for f in Chain.from_urdf_text(text).findings if f.code == 'chosen_tip']
    assert finding.element == "link 'tool0'"
    assert finding.value == ('camera', 'flange')
    named = rd.RobotModel.from_urdf_text(text, tip_link='camera')
    assert 'chosen_tip' not in {f.code for f in named.findings}
    assert 'chosen_tip' not in {f.code for f in rd.RobotModel.from_urdf_text(robot()).findings}


def refusal(text):
    with pytest.raises(errors.NoChain) as caught:
        rd.RobotModel.from_urdf_text(text)
    return str(caught.value).splitlines()[1:]


def test_candidates_stand_one_a_line_with_their_joints():
    assert refusal(robot(fixed('l1', 'camera'))) == [
        "  'camera': 1 joint, 'base-l1'",
        "  'l2': 2 joints, 'base-l1', 'l1-l2'",
    ]


def test_the_link_that_carries_the_fingers_is_a_candidate():
    lines = refusal(robot(*FINGERS))
    assert lines == [
        "  'gripper': 2 joints, 'base-l1', 'l1-l2', before the ways part",
        "  'left': 3 joints, 'base-l1', 'l1-l2', 'gripper-left'",
        "  'right': 3 joints, 'base-l1', 'l1-l2', 'gripper-right'; 'gripper-right' mimics another",
    ]
    assert rd.RobotModel.from_urdf_text(robot(*FINGERS), tip_link='gripper').n == 2


def test_links_with_the_same_joints_share_a_line():
    lines = refusal(robot(*FINGERS, fixed('l2', 'camera', 'tool0')))
    assert lines[0] == "  'tool0': 2 joints, 'base-l1', 'l1-l2'"
    assert len(lines) == 3


def test_long_lists_are_cut():
    fans = [link(f'f{k}') + joint('continuous', 'l2', f'f{k}') for k in range(40)]
    lines = refusal(robot(*fans))
    assert len(lines) == 21
    assert lines[-1] == '  and 21 more'
