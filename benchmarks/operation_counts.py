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
from robots import public_urdf, random_chain

import robodyn_ros as rd
from robodyn_ros.compiled.c.export import RIGID_BODY
from robodyn_ros.compiled.symbolic.kernels import build_kernel
from robodyn_ros.compiled.symbolic.run_time import RunTime
from robodyn_ros.model import STANDARD_GRAVITY

ROOT = Path(__file__).resolve().parents[1]
DEGREES = {
    'newton_euler': 1,
    'kane': 1,
    'lagrange_euler': 4,
    'generalized_dalembert': 3,
    'lagrangian_coefficients': 4,
}
# Multiplications and additions of a tracer of ours before this recursion, to be at or under.
TO_BE_UNDER: dict[str, Count] = {
    'general 6R': (412, 348),
    'PUMA 560': (259, 245),
    'SCEMI, RX90': (247, 234),
    'UR5': (262, 249),
    'Panda': (314, 298),
    'Stanford': (227, 214),
}
# SymPyBotics with base parameters.
SYMPYBOTICS: dict[str, Count] = {
    'general 6R': (512, 376),
    'PUMA 560': (314, 253),
    'SCEMI, RX90': (286, 226),
    'UR5': (301, 244),
    'Panda': (362, 288),
}
# Gautier and Khalil 1988, Table 1, minimum parameters: general and simplified inertias.
TABLE_1: dict[str, tuple[Count, Count | None]] = {
    'general 6R': ((425, 369), None),
    'Stanford': ((232, 218), (142, 99)),
    'SCEMI, RX90': ((253, 238), (159, 113)),
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
        counts = general, numbers, TO_BE_UNDER[name], SYMPYBOTICS.get(name), paper
        rows.append([name, *map(pair, counts)])
    head = ('arm', 'any numbers', 'its own numbers', 'to be under', 'SymPyBotics', '003, Table 1')
    return table(head, rows)


def simplified_table() -> str:
    rows = []
    for name, components in SIMPLE_MOMENTS.items():
        arm = simplified_inertias(arms()[name], components)
        geared = arm.with_rotor_inertia(np.linspace(0.3, 0.4, arm.n))
        counts = (
            structural_count(arm),
            structural_count(geared),
            structural_count(geared, terminal_forces=True),
            TABLE_1[name][1],
        )
        rows.append([name, *map(pair, counts)])
    return table(('arm', 'links alone', 'and rotors', 'and terminal forces', 'Table 1'), rows)


def growth_of_customised() -> tuple[str, str]:
    counts = [structural_count(general_arm(n)) for n in range(4, 12)]
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


PAPERS = (
    ('001, Table 3.1, Lagrange-Euler', '128/3 n⁴ + 512/3 n³ + 844/3 n² + 76/3 n',
     '98/3 n⁴ + 781/6 n³ + 637/3 n² + 107/6 n', (102440, 78203)),
    ('001, Table 3.4, Newton-Euler', '117 n − 24', '103 n − 21', (678, 597)),
    ("001, Table 3.5, generalized d'Alembert", '13/6 n³ + 105/2 n² + 268/3 n + 69',
     '4/3 n³ + 44 n² + 146/3 n + 45', (2963, 2209)),
    ('003, Table 1, standard parameters', '101 n − 129', '90 n − 118', (477, 422)),
    ('003, Table 1, minimum parameters', '92 n − 127', '81 n − 117', (425, 369)),
    ('004, Table 1, Hollerbach 1980', '412 n − 277', '320 n − 201', (2195, 1719)),
    ('004, Table 1, Luh et al.', '150 n − 48', '131 n − 48', (852, 738)),
    ('004, Table 1, Walker and Orin', '137 n − 22', '101 n − 11', (800, 595)),
    ('004, Table 1, Khalil et al.', '105 n − 92', '94 n − 86', (538, 478)),
    ('004, Table 1, Angeles et al. (Kane)', '105 n − 109', '90 n − 105', (521, 435)),
)  # fmt: skip

EXPLANATION = """
A multiplication is one of two numbers that are both unknown before the joint positions are, or of
one and a constant; divisions count as multiplications, differences as additions. Sines, cosines,
changes of sign, factors of 0 and ±1, and what is made of constants alone are not counted: the
papers count so, too.

Why ours differ from the print:

- **Our formulations** run here as they stand in `robodyn_ros/dynamics`: NumPy expressions over all
  links at once, on scalars that record every product and sum that is not one with 0 or ±1. They
  are written to be read and to be evaluated in batches, with rotation matrices, first moments and
  tensors about the frames' origins. `newton_euler` multiplies by whole rotation matrices, forms
  U = S(ẇ) + S(w) S(w) as a product of matrices, and shares nothing, hence more than Table 3.4,
  whose count is for the frames of a PUMA. `kane` turns vectors in 8 multiplications as the paper
  does; it also serves prismatic joints and β.
- **Lagrange-Euler** is far below Table 3.1: the transforms that lead to a coefficient's lowest
  index are left out of the trace (Bejczy's shortcut), and the sum over links is inside it. See
  `docs/formulations.md`. The degree falls by one or two; the polynomials show it.
- **Table 3.5** prints 112/3 n³ and 105/12 n², which give no whole numbers; 512/3 and 105/2 do, and
  stand above. Table 1 of 003 prints 477 for 101 n − 127, which is 479: 101 n − 129 gives 477.
- **The customised recursion** is below 003, Table 1, because the tensor is given in second moments
  with that along the axis at zero (in place of YY), so that it shares U with the first moment;
  because U z is turned from link to link in place of the angular acceleration; and because
  parallel axes share what lies before the first of them. See
  `robodyn_ros/compiled/symbolic/newton_euler.py`.
- **Its own numbers** take fewer operations than any numbers: zeros fold, the most frequent offset
  is the unit of length, and the last frame is turned so that the last centre of mass lies over x.
- **Simplified** means diagonal tensors and one component of each first moment. The paper does not
  print which; for Stanford it is here the largest of Bejczy's Appendix B, in modified DH frames
  (x z z z y z), for SCEMI those along upper arm, forearm and hand (x x y z y z). The note under
  Table 1 says that motor inertias and terminal forces "are taken into account" in this column, and
  not how. The table shows the links alone, with rotors, and with rotors and a force and a moment
  at the tip as six more inputs: all are below the print.
"""


def document() -> str:
    multiplications, additions = growth_of_customised()
    ours = [
        'customised Newton-Euler, general arm', multiplications, additions,
        pair(structural_count(general_arm(6))),
    ]  # fmt: skip
    head = ('', 'multiplications', 'additions', 'n = 6')
    kernels = []
    for name in ('UR5', 'Panda'):
        run_time = RunTime.of(arms()[name], ())
        node = RunTime.of(arms()[name], ('gravity', 'payload'))
        for label, inputs in ((name, run_time), (f'{name}, run-time gravity and payload', node)):
            counts = (build_kernel(kernel, inputs).operation_count for kernel in RIGID_BODY)
            kernels.append([label, *map(pair, counts)])
    return '\n'.join(
        [
            '# Operations: multiplications / additions',
            '',
            'Made by `python benchmarks/operation_counts.py --write`.',
            '',
            '## Inverse dynamics, generated for one arm',
            '',
            '*Any numbers*: every length, sine and inertial parameter is a symbol.',
            '*To be under*: our first tracer. Gravity lies along axis 1.',
            '',
            inverse_dynamics_table(),
            '',
            '## Simplified inertias, any numbers',
            '',
            simplified_table(),
            '',
            '## As functions of the number of joints',
            '',
            'Revolute joints, general geometry and inertias, gravity along axis 1.',
            '',
            table(head, [ours, *formulation_rows()]),
            '',
            'The papers:',
            '',
            table(head, [[name, m, a, pair(six)] for name, m, a, six in PAPERS]),
            EXPLANATION,
            '## All functions, own numbers',
            '',
            table(('', *(name.replace('_', ' ') for name in RIGID_BODY)), kernels),
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
