# SPDX-License-Identifier: Apache-2.0
"""The picture of the call times has the tables' ratios in its title."""

import sys
from pathlib import Path

import pytest

pytest.importorskip('PIL.Image')
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'docs'))

from draw_compiled import headline, tables_of

TABLES = '\n'.join(
    f'### {arm}\n\n| | Pinocchio | C | C, out= |\n|---|---|---|---|\n'
    f'| mass matrix | 1.0 | 0.25 (×4.0) | 0.1 (×10) |\n| regressor | {slow} | 0.5 (×1) |  |\n'
    for arm, slow in (('UR5', '4.5'), ('Panda', '5.0'))
)


def test_headline_of_the_call_times_is_made_of_the_tables():
    tables = tables_of(TABLES)
    assert tables['UR5']['mass matrix'] == {'Pinocchio': 1.0, 'C': 0.25, 'C, out=': 0.1}
    assert '4 to 10 times as fast as Pinocchio' in headline(tables)
