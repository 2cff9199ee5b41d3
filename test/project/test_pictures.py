# SPDX-License-Identifier: Apache-2.0
"""The pictures of the docs say what they show, and show what the page beside them says."""

import runpy
import sys
from pathlib import Path

import pytest

Image = pytest.importorskip('PIL.Image')
ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / 'docs' / 'images'
sys.path.insert(0, str(ROOT / 'docs'))

from draw_compiled import PAGE, PICTURE, draw, headline, metadata, tables_of  # noqa: E402

TABLES = '\n'.join(
    f'### {arm}\n\n| | Pinocchio | C | C, out= |\n|---|---|---|---|\n'
    f'| mass matrix | 1.0 | 0.25 (×4.0) | 0.1 (×10) |\n| regressor | {slow} | 0.5 (×1) |  |\n'
    for arm, slow in (('UR5', '4.5'), ('Panda', '5.0'))
)


def told(picture):
    """Return what a PNG file says of itself."""
    with Image.open(picture) as image:
        return {key: image.text.get(key) for key in ('Title', 'Source')}


def test_headline_of_the_call_times_is_made_of_the_tables():
    tables = tables_of(TABLES)
    assert tables['UR5']['mass matrix'] == {'Pinocchio': 1.0, 'C': 0.25, 'C, out=': 0.1}
    assert '4 to 10 times as fast as Pinocchio' in headline(tables)


def test_picture_of_the_call_times_is_that_of_the_page(tmp_path):
    text = PAGE.read_text(encoding='utf-8')
    assert told(PICTURE) == metadata(text), 'run: python docs/draw_compiled.py'
    slower = str(tables_of(text)['UR5']['inverse dynamics']['Pinocchio'])
    draw(text.replace(slower, '9.999'), tmp_path / 'other.png')
    assert told(tmp_path / 'other.png') != metadata(text)


def test_picture_of_the_parts_of_a_torque_has_its_title():
    pytest.importorskip('rosbags')
    script = runpy.run_path(str(ROOT / 'examples' / 'record_motion.py'))
    assert told(IMAGES / 'torque_parts.png')['Title'] == script['TITLE']
