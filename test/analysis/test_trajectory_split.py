# SPDX-License-Identifier: Apache-2.0
"""Translational and rotational parts along a trajectory, Fu, Gonzalez and Lee 1987, 3.4.1."""

import json
import re
from itertools import combinations_with_replacement

import numpy as np
import pinocchio as pin
import pytest
from command_line import json_of, output_of
from known_arms import known_pair
from markdown_tables import tables
from paper_arms import CARTESIAN, PUMA, URDF
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.analysis import split_along
from robodyn_ros.errors import InvalidArgument

SET_POINTS = 31


@pytest.fixture(scope='module')
def motion():
    """Return 31 setpoints, as many as in Figure 3.10, of a smooth motion of the PUMA."""
    t = np.linspace(0, 1, SET_POINTS)[:, None]
    amplitude = np.array([1.0, -0.8, 0.9, 0.5, -0.7, 1.2])
    return amplitude * (10 * t**3 - 15 * t**4 + 6 * t**5), amplitude * 30 * t**2 * (1 - t) ** 2


@pytest.fixture(scope='module')
def split(motion):
    return split_along(PUMA.model(), *motion)


def test_torque_parts_add_up_to_pinocchios_coriolis_torque(split, motion):
    _, oracle = known_pair('puma560')
    for k, (q, qd) in enumerate(zip(*motion)):
        h = oracle.coriolis_matrix(q, qd) @ qd
        for i in range(6):
            assert split[f'h_{i + 1}'].values[k] == pytest.approx(h[i], abs=1e-10)


def test_two_link_arm_parts_in_closed_form():
    # Slender rods: of m l2/3 about the end three quarters are translation of the centre of mass.
    m1, m2, length = 2.0, 3.0, 0.5
    arm = rd.RobotModel.from_urdf(two_link_urdf(m1, m2, length))
    q = np.array([[0.3, 0.9], [0.1, -1.2]])
    split = split_along(arm, q, np.ones_like(q))
    c2 = np.cos(q[:, 1])
    square = length**2
    translational = m1 * square / 4 + m2 * square * (5 / 4 + c2)
    assert split['D_11'].translational == pytest.approx(tuple(translational))
    assert split['D_11'].rotational == pytest.approx(((m1 + m2) * square / 12,) * 2)
    assert split['D_22'].translational == pytest.approx((m2 * square / 4,) * 2)
    assert split['D_22'].rotational == pytest.approx((m2 * square / 12,) * 2)
    assert split['D_22'].dominant == 'both'
    assert split['D_22'].lesser_fraction == pytest.approx(1 / 3)
    # All rotations are about one axis, so that nothing turns gyroscopically.
    assert split['h_1'].dominant == split['h_2'].dominant == 'translational'
    assert split_along(arm, q, np.ones_like(q), fraction=0.4)['D_22'].dominant == 'translational'


def test_parts_are_those_of_pinocchios_centres_of_mass(split, motion):
    # D of the translation is the sum of m Jᵀ J, J that of each body's centre of mass.
    _, oracle = known_pair('puma560')
    for k, q in enumerate(motion[0]):
        pin.computeJointJacobians(oracle.model, oracle.data, oracle.configuration(q))
        translational, rotational = np.zeros((2, 6, 6))
        for joint in oracle.joint_ids:
            body = oracle.model.inertias[joint]
            j = pin.getJointJacobian(oracle.model, oracle.data, joint, pin.LOCAL)
            j = j[:, oracle.order]
            velocity = j[:3] - pin.skew(body.lever) @ j[3:]
            translational += body.mass * velocity.T @ velocity
            rotational += j[3:].T @ body.inertia @ j[3:]
        for i in range(6):
            for m in range(i, 6):
                element = split[f'D_{i + 1}{m + 1}']
                assert element.translational[k] == pytest.approx(translational[i, m], abs=1e-12)
                assert element.rotational[k] == pytest.approx(rotational[i, m], abs=1e-12)
                both = translational[i, m] + rotational[i, m]
                assert element.values[k] == pytest.approx(both, abs=1e-10)


# Which part the book sees dominate, 3.4.1, and of which elements both. Its own PUMA has other
# inertias and another trajectory.
BOOK = {
    'translational': ('D_12', 'D_22', 'D_23', 'D_33', 'D_45', 'D_56', 'h_1', 'h_2', 'h_3'),
    'rotational': ('D_44', 'D_46', 'D_55', 'D_66', 'h_4'),
    'both': (
        'D_11', 'D_13', 'D_14', 'D_15', 'D_16', 'D_24', 'D_25', 'D_26', 'D_34', 'D_35', 'D_36',
        'h_5', 'h_6',
    ),
}  # fmt: skip
# Of these the book's part is not the larger one here; a test below says why.
OTHERWISE = {'D_45', 'D_56', 'h_4'}
TENTH = 0.1


def test_the_books_lists_are_complete():
    elements = [f'D_{i}{j}' for i, j in combinations_with_replacement(range(1, 7), 2)]
    elements += [f'h_{i}' for i in range(1, 7)]
    assert sorted(x for part in BOOK.values() for x in part) == sorted(elements)


@pytest.mark.parametrize('part', ['translational', 'rotational'])
def test_part_that_dominates_in_the_book_is_the_larger_one(split, part):
    for symbol in set(BOOK[part]) - OTHERWISE:
        element = split[symbol]
        sizes = [np.abs(x).max() for x in (element.translational, element.rotational)]
        larger = 'translational' if sizes[0] > sizes[1] else 'rotational'
        assert larger == part, symbol
    alone = {'translational': ('D_12', 'h_3'), 'rotational': ('D_44', 'D_46', 'D_66')}
    for symbol in alone[part]:
        assert split[symbol].dominant == part


def ruling(element):
    """Return which part of an element rules where a tenth of it neglects the other."""
    parts = {'translational': element['translational'], 'rotational': element['rotational']}
    sizes = {name: np.abs(part).max() for name, part in parts.items()}
    if max(sizes.values()) < 1e-12:
        return 'none'
    lesser, larger = sorted(sizes, key=sizes.__getitem__)
    return larger if sizes[lesser] <= TENTH * sizes[larger] else 'both'


def test_a_part_rules_where_the_other_is_at_most_a_tenth_of_it(split):
    elements = json.loads(split.to_json())
    elements = {x['symbol']: x for x in elements['inertia'] + elements['coriolis']}
    found = {symbol: ruling(x) for symbol, x in elements.items()}
    assert found == {symbol: split[symbol].dominant for symbol in elements}
    # A fifth instead of a tenth would say otherwise.
    assert any(TENTH < split[symbol].lesser_fraction < 2 * TENTH for symbol in elements)


def test_the_page_says_what_the_command_prints():
    # docs/analysis.md has the book's lists beside those of `robodyn split urdf/puma560.urdf`.
    printed = output_of('split', URDF / PUMA.file)
    found = {line.split()[0]: line.split()[-1] for line in printed.splitlines()[1:]}
    record = json_of('split', URDF / PUMA.file)
    for element in record['inertia'] + record['coriolis']:
        assert found[element['symbol']] == ruling(element)
    [((_, *heads), *rows)] = tables('analysis.md', 'translation', 'rotation', 'both')
    digits = str.maketrans('₁₂₃₄₅₆', '123456')

    def symbols(cell):
        return {f'{x[0]}_{x[1:].translate(digits)}' for x in re.findall(r'[Dh][₁-₆]+', cell)}

    page = {row[0]: dict(zip(heads, map(symbols, row[1:]))) for row in rows}
    names = {'translation': 'translational', 'rotation': 'rotational', 'both': 'both'}
    ours = page['`robodyn split`']
    for head in heads:
        part = names.get(head, 'none')
        assert ours[head] == {symbol for symbol, rules in found.items() if rules == part}, head
        assert page['the book'][head] == set(BOOK.get(part, ())), head


def test_elements_where_this_puma_is_not_the_books(split):
    # The book lists D45 and D56 under translation, and says below that they are "very small when
    # compared with the rotational elements": D45 is rotation's here; D56 is nothing, as axes 5
    # and 6 are at right angles and link 6 has its mass on axis 6 and no products of inertia.
    assert split['D_45'].dominant == 'rotational'
    assert split['D_56'].dominant == 'none'
    # h4 is rotation's in the book, h5 and h6 both's. Light wrists on long forearms are swung.
    assert split['h_4'].dominant == split['h_5'].dominant == 'translational'
    assert split['h_6'].dominant == 'rotational'
    # Link 6 has its centre of mass on axis 6.
    assert split['D_66'].lesser_fraction == 0


def test_arm_of_slides_only_translates():
    arm = CARTESIAN.model()
    q = np.zeros((2, 3))
    split = split_along(arm, q, np.ones_like(q))
    assert split['D_11'].dominant == 'translational' and split['D_11'].unit == 'kg'
    assert split['h_1'].dominant == 'none' and split['h_1'].unit == 'N'


def test_single_configuration_and_a_fraction_beyond_one_are_refused(motion):
    with pytest.raises(InvalidArgument, match=r'shape \(N, 6\)'):
        split_along(PUMA.model(), np.zeros(6), np.zeros(6))
    with pytest.raises(InvalidArgument, match='fraction'):
        split_along(PUMA.model(), *motion, fraction=1.5)
