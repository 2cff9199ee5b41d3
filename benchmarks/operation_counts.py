# SPDX-License-Identifier: Apache-2.0
"""
Count the multiplications and additions of generated code and of every formulation.

    python benchmarks/operation_counts.py [--write]

``--write`` puts the tables into docs/operation_counts.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from counting import Count, folded_count, formulation_count, structural_count
from printed_counts import (
    PRINTED,
    SYMPYBOTICS,
    TABLE_1,
    TABLE_1_STANDARD,
)
from robots import public_urdf, random_chain

import robodyn_ros as rd
from robodyn_ros.compiled import RIGID_BODY
from robodyn_ros.compiled.symbolic.kernels import build_kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.model import STANDARD_GRAVITY

ROOT = Path(__file__).resolve().parents[1]
DEGREES = {
    'newton_euler': 1,
    'kane': 1,
    'lagrange_euler': 4,
    'generalized_dalembert': 3,
    'lagrangian_coefficients': 4,
}
# Which component of each link's first moment is not zero in a simplified arm. Stanford: the
# largest of Bejczy 1974, Appendix B, in modified DH frames. SCEMI: those along upper arm, forearm
# and hand.
SIMPLE_MOMENTS = {'Stanford': (0, 2, 2, 2, 1, 2), 'SCEMI, RX90': (0, 0, 1, 2, 1, 2)}


def general_arm(n: int) -> rd.RobotModel:
    """Return a revolute arm without a zero in its DH table beyond row 1, gravity along axis 1."""
    chain = random_chain(np.random.default_rng(n), n, prismatic_fraction=0.0)
    arm = rd.RobotModel.from_urdf(chain, tip_link='tip')
    alpha, a, d = np.random.default_rng(n).uniform(0.1, 1.0, (3, n))
    alpha[0] = a[0] = d[0] = 0.0
    still = np.zeros(n)
    table = replace(arm.dh, alpha=alpha, a=a, beta=still, theta=still, d=d)
    arm = replace(arm, dh=replace(table, base_transform=np.eye(4)))
    return general_inertias(arm.with_gravity(STANDARD_GRAVITY))


def general_inertias(arm: rd.RobotModel) -> rd.RobotModel:
    """Return the arm with inertial parameters of which none is zero, and joints at no offset."""
    generator = np.random.default_rng(arm.n)
    offsets = np.where(arm.dh.prismatic, arm.dh.theta, 0.0)
    arm = replace(arm, dh=replace(arm.dh, theta=offsets))
    return arm.with_inertial_parameters(generator.uniform(0.5, 1.5, (arm.n, 10)))


def simplified_inertias(arm: rd.RobotModel, components: Sequence[int]) -> rd.RobotModel:
    """Return the arm with diagonal tensors and one component of each first moment."""
    generator = np.random.default_rng(arm.n)
    parameters = np.zeros((arm.n, 10))
    parameters[:, [0, 3, 5, 9]] = generator.uniform(0.5, 1.5, (arm.n, 4))
    parameters[np.arange(arm.n), 6 + np.array(components)] = generator.uniform(0.5, 1.5, arm.n)
    return general_inertias(arm).with_inertial_parameters(parameters)


def arms() -> dict[str, rd.RobotModel]:
    """Return the six arms with their own inertias."""
    own = {
        'PUMA 560': ('urdf/puma560.urdf', None, None),
        'SCEMI, RX90': ('urdf/scemi.urdf', None, None),
        'UR5': (public_urdf('ur5_robot.urdf'), 'base_link', 'tool0'),
        'Panda': (public_urdf('panda.urdf'), 'panda_link0', 'panda_link8'),
        'Stanford': ('urdf/stanford.urdf', None, None),
    }
    return {
        'general 6R': general_arm(6),
        **{
            name: rd.RobotModel.from_urdf(ROOT / file, base_link=base, tip_link=tip)
            for name, (file, base, tip) in own.items()
        },
    }


def polynomial(counts: Sequence[int], first: int, degree: int) -> str:
    """Return the polynomial through counts at ``first``, ``first + 1``, ... joints, as text."""
    joints = [Fraction(first + k) for k in range(degree + 1)]
    matrix = [[n**power for power in range(degree + 1)] for n in joints]
    coefficients = _solved(matrix, [Fraction(count) for count in counts[: degree + 1]])
    for k, count in enumerate(counts):
        value = sum(c * (first + k) ** power for power, c in enumerate(coefficients))
        if value != count:
            return 'no polynomial'
    terms = [
        f'{"+" if c > 0 else "−"} {abs(c)}{("", " n", " n²", " n³", " n⁴")[power]}'
        for power, c in reversed(list(enumerate(coefficients)))
        if c
    ]
    return ' '.join(terms).removeprefix('+ ')


def _solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Return the solution of linear equations, exactly."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i])]
    return [row[-1] for row in rows]


def pair(count: Count | None) -> str:
    return '' if count is None else f'{count[0]} / {count[1]}'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ['| ' + ' | '.join(head) + ' |', '|---' * len(head) + '|']
    return '\n'.join([*lines, *('| ' + ' | '.join(row) + ' |' for row in rows)])


def inverse_dynamics_table() -> str:
    rows = []
    for name, arm in arms().items():
        general = structural_count(general_inertias(arm))
        numbers = folded_count(arm)
        paper = TABLE_1.get(name, (None, None))[0]
        rows.append([name, *map(pair, (general, numbers, SYMPYBOTICS.get(name), paper))])
    head = ('arm', 'any numbers', 'its own numbers', 'SymPyBotics', '003, Table 1')
    return table(head, rows)


def regrouping_table() -> str:
    rows = []
    for name, (minimum, _) in TABLE_1.items():
        arm = general_inertias(arms()[name])
        ours = structural_count(arm, regrouped=False), structural_count(arm)
        rows.append([name, *map(pair, (*ours, TABLE_1_STANDARD[name][0], minimum))])
    return table(('arm', 'standard', 'minimum', '003: standard', '003: minimum'), rows)


def simplified_table() -> str:
    rows = []
    for name, components in SIMPLE_MOMENTS.items():
        arm = simplified_inertias(arms()[name], components)
        geared = arm.with_rotor_inertia(np.linspace(0.3, 0.4, arm.n))
        for label, regrouped, printed in (
            ('standard', False, TABLE_1_STANDARD),
            ('minimum', True, TABLE_1),
        ):
            counts = (
                structural_count(arm, regrouped=regrouped),
                structural_count(geared, regrouped=regrouped),
                structural_count(geared, regrouped=regrouped, terminal_forces=True),
                printed[name][1],
            )
            rows.append([f'{name}, {label}', *map(pair, counts)])
    return table(('arm', 'links alone', 'and rotors', 'and terminal forces', 'Table 1'), rows)


def growth_of_customised(*, regrouped: bool = True) -> tuple[str, str]:
    counts = [structural_count(general_arm(n), regrouped=regrouped) for n in range(4, 12)]
    multiplications, additions = (
        polynomial([count[k] for count in counts], 4, 1) for k in range(2)
    )
    return multiplications, additions


def formulation_rows() -> list[list[str]]:
    rows = []
    for method, degree in DEGREES.items():
        joints = range(3, 3 + degree + 2)
        counts = [formulation_count(general_arm(n), method) for n in joints]
        six = formulation_count(general_arm(6), method)
        formulas = (polynomial([c[k] for c in counts], joints[0], degree) for k in range(2))
        rows.append([f'`{method}`', *formulas, pair(six)])
    return rows


EXPLANATION = """
Counted are multiplications and divisions, additions and differences of numbers that depend on the
joint positions or are run-time inputs. Not counted, as in the papers: sines, cosines, changes of
sign, factors of 0 and ±1, and operations on constants alone.

Ours differ from the print:

- **Our formulations** are counted as they stand in `robodyn_ros/dynamics`, written to be read and
  evaluated in batches. `newton_euler` multiplies by whole rotation matrices and shares nothing; on
  a PUMA with inertias of which none is zero it takes {puma}. `kane` also serves prismatic joints
  and β, and leaves the last cycle whole, which 004 trims by hand.
- **Lagrange-Euler** takes [Bejczy's shortcut](formulations.md#the-equations).
- **Tables 3.5 of 001 and 1 of 003** are corrected ([papers](papers.md)). Table 3.5 shares no
  products, unlike 3.1 and 3.4. In Table 1 of 004 we count the case that Z₀ and Z₁ coincide.
- **The customised recursion** (`robodyn_ros/compiled/symbolic/newton_euler.py`) has the tensor in
  second moments with that along the axis at zero, and shares U with the first moment; it turns U z
  from link to link; parallel axes share the links before the first of them.
- **Its own numbers**: zeros fold, the most frequent offset is the unit of length, and the last
  frame is turned so that the last centre of mass lies over x.
- **Simplified** means diagonal tensors and one component of each first moment. The paper does not
  print which. For Stanford it is the largest of Bejczy's Appendix B, in modified DH frames
  (x z z z y z), for SCEMI those along upper arm, forearm and hand (x x y z y z).
"""


def document() -> str:
    general = general_arm(6)
    growth = [
        [
            f'customised Newton-Euler, {label}', *growth_of_customised(regrouped=regrouped),
            pair(structural_count(general, regrouped=regrouped)),
        ]
        for label, regrouped in (('minimum parameters', True), ('standard parameters', False))
    ]  # fmt: skip
    head = ('', 'multiplications', 'additions', 'n = 6')
    kernels = {}
    for name in ('UR5', 'Panda'):
        run_time = RunTime.of(arms()[name], ())
        node = RunTime.of(arms()[name], ('gravity', 'payload'))
        for label, inputs in ((name, run_time), (f'{name}, run-time', node)):
            counts = (build_kernel(kernel, inputs).operation_count for kernel in RIGID_BODY)
            kernels[label] = list(map(pair, counts))
    papers = [[row.name, pair(row.six)] for row in PRINTED]
    puma = formulation_count(general_inertias(arms()['PUMA 560']), 'newton_euler')
    explanation = EXPLANATION.format(puma=pair(puma))
    return '\n'.join(
        [
            '# Operations: multiplications / additions',
            '',
            'Made by `python benchmarks/operation_counts.py --write`. Papers: 001 Fu, Gonzalez,',
            'Lee 1987; 003 Gautier, Khalil 1988, after Khalil, Kleinfinger 1987; 004 Angeles, Ma,',
            'Rojas 1989 ([misprints and tests](papers.md)).',
            '',
            '## Inverse dynamics, generated for one arm',
            '',
            '*Any numbers*: every length, sine and inertial parameter is a symbol. Gravity lies',
            'along axis 1.',
            '',
            inverse_dynamics_table(),
            '',
            '## What regrouping saves',
            '',
            'Any numbers; with standard parameters, nothing is regrouped. 003 is its Table 1.',
            '',
            regrouping_table(),
            '',
            '## Simplified inertias, any numbers',
            '',
            simplified_table(),
            '',
            '## As functions of the number of joints',
            '',
            'Revolute joints, general geometry and inertias, gravity along axis 1.',
            '',
            table(head, [*growth, *formulation_rows()]),
            '',
            'The papers, n = 6; their formulas in n are in `benchmarks/printed_counts.py`:',
            '',
            table(('', 'n = 6'), papers),
            explanation,
            '## All functions, own numbers',
            '',
            'Beside them the same with gravity and payload as run-time inputs.',
            '',
            table(
                ('', *kernels),
                [
                    [name.replace('_', ' '), *counts]
                    for name, *counts in zip(RIGID_BODY, *kernels.values(), strict=True)
                ],
            ),
            '',
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--write', action='store_true')
    text = document()
    print(text)
    if parser.parse_args().write:
        ROOT.joinpath('docs', 'operation_counts.md').write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
