# SPDX-License-Identifier: Apache-2.0
"""
Draw the pictures of reports that README and docs show; needs Chromium.

    python docs/draw_report.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'test' / 'support'))

from browser import chromium  # noqa: E402
from robots import public_urdf  # noqa: E402

from robodyn_ros.cli import robodyn  # noqa: E402

IMAGES = ROOT / 'docs' / 'images'
ARMS = {
    'panda': (str(public_urdf('panda.urdf')), '--base', 'panda_link0', '--tip', 'panda_link8'),
    'jpl_rrp': (str(ROOT / 'urdf' / 'jpl_rrp.urdf'),),
}
WIDTH = 1180  # of the window [px]
# Picture: the report, from the top of the first element to the bottom of the last.
PICTURES = {
    'report_panda': ('panda', 'header', '#arm .paper'),
    'report_arm': ('jpl_rrp', '#arm .stage', '#arm .paper'),
    'report_coupling': ('jpl_rrp', '#coupling .figures', '#coupling .figures'),
}
MARGIN = 16


def main() -> None:
    """Make the reports and take the pictures."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for arm, arguments in ARMS.items():
            path = Path(folder, f'{arm}.html')
            command = ['report', *arguments, '-o', str(path)]
            CliRunner().invoke(robodyn, command, catch_exceptions=False)
            for name, (of, first, last) in PICTURES.items():
                if of == arm:
                    take(browser, path, name, first, last)


def take(browser: Any, path: Path, name: str, first: str, last: str) -> None:
    """Take one picture of a page."""
    page = browser.new_page(viewport={'width': WIDTH, 'height': 900})
    page.goto(path.as_uri())
    top, bottom = (page.locator(each).first.bounding_box() for each in (first, last))
    clip = {
        'x': 0,
        'y': max(0, top['y'] - MARGIN),
        'width': WIDTH,
        'height': bottom['y'] + bottom['height'] - top['y'] + 2 * MARGIN,
    }
    page.screenshot(path=IMAGES / f'{name}.png', clip=clip, full_page=True)
    page.close()
    print(f'wrote docs/images/{name}.png')


if __name__ == '__main__':
    main()
