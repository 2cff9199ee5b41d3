# SPDX-License-Identifier: Apache-2.0
"""
Draw the picture of docs/benchmarks.md from the tables of that page.

    python docs/draw_compiled.py [--check]
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image
from written_files import ROOT, exit_with

DOCS = Path(__file__).resolve().parent
PAGE, PICTURE = DOCS / 'benchmarks.md', DOCS / 'images' / 'compiled.png'
ARMS = ('UR5', 'Panda')
COLOURS = {
    'roboticstoolbox': '0.8',
    'frax': 'tab:orange',
    'Drake': 'tab:green',
    'iDynTree': 'tab:red',
    'MuJoCo': '0.55',
    'Pinocchio': '0.2',
    'C': 'tab:blue',
}

Table = dict[str, dict[str, float]]
"""Of each function, microseconds by whose code it is."""


def tables_of(text: str) -> dict[str, Table]:
    """Return the page's table for each arm."""
    result = {}
    for arm in ARMS:
        block = re.search(rf'^### {arm}\n\n((?:\|.*\n)+)', text, re.M)
        assert block, f'no table of {arm}'
        header, _, *rows = (
            [cell.strip() for cell in line.strip('|\n').split('|')]
            for line in block.group(1).splitlines()
        )
        result[arm] = {
            row[0]: {
                name: float(cell.split()[0]) for name, cell in zip(header[1:], row[1:]) if cell
            }
            for row in rows
        }
    return result


def growth_of(text: str) -> np.ndarray:
    """Return rows of joints, microseconds and operations."""
    rows = re.findall(r'^\| (\d+) \| ([\d.]+) \| (\d+) \| (\d+) \|$', text, re.M)
    return np.array([(int(n), float(time), int(m) + int(a)) for n, time, m, a in rows])


def headline(tables: dict[str, Table]) -> str:
    """Return what the picture shows, in a sentence."""
    ratios = [row['Pinocchio'] / row['C'] for table in tables.values() for row in table.values()]
    least, most = int(min(ratios)), int(max(ratios))
    return f'Compiled for one arm, {least} to {most} times as fast as Pinocchio'


def metadata(text: str) -> dict[str, str]:
    """Return what is written into the picture's file: its headline, and a digest of its data."""
    data = json.dumps([tables_of(text), growth_of(text).tolist()])
    return {
        'Title': headline(tables_of(text)),
        'Source': hashlib.sha256(data.encode()).hexdigest(),
    }


def told(picture: Path) -> dict[str, str]:
    """Return what a picture's file says of itself."""
    with Image.open(picture) as image:
        return {key: image.text.get(key) for key in ('Title', 'Source')}


def draw(text: str, path: Path) -> None:
    """Draw the tables of the page's text."""
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt

    tables = tables_of(text)
    figure, axes = plt.subplots(
        1, 3, figsize=(13, 4.2), width_ratios=[3, 3, 2.4], layout='constrained'
    )
    timed = {label for table in tables.values() for row in table.values() for label in row}
    for axis, (arm, table) in zip(axes, tables.items()):
        rows = np.arange(len(table))
        axis.hlines(rows, 0.03, 1000, color='0.9', linewidth=0.8, zorder=0)
        for label, colour in COLOURS.items():
            if label not in timed:
                continue
            times = [row.get(label, np.nan) for row in table.values()]
            axis.plot(times, rows, 'o', color=colour, markersize=8, label=label)
        axis.set_yticks(rows, list(table))
        axis.invert_yaxis()
        axis.set_xscale('log')
        axis.set_xlim(0.05, 1000)
        axis.xaxis.set_major_formatter('{x:g}')
        axis.set_xlabel('µs per call from Python')
        axis.set_title(arm, loc='left')
        axis.tick_params(axis='y', length=0)
        axis.spines[['top', 'right', 'left']].set_visible(False)
    joints, times, operations = growth_of(text).T
    axes[2].plot(joints, times, 'o-', color='tab:blue')
    axes[2].set_ylabel('µs per call', color='tab:blue')
    axes[2].set_ylim(0)
    other = axes[2].twinx()
    other.plot(joints, operations, 's--', color='tab:green', markersize=4)
    other.set_ylabel('operations', color='tab:green')
    other.set_ylim(0)
    axes[2].set_xlabel('joints')
    axes[2].set_title('Inverse dynamics by the joints', loc='left', fontsize=11)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower left', ncols=len(labels), frameon=False)
    figure.suptitle(headline(tables), x=0.01, ha='left', fontsize=14, fontweight='bold')
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata=metadata(text))
    plt.close(figure)


if __name__ == '__main__':
    page = PAGE.read_text(encoding='utf-8')
    if '--check' not in sys.argv[1:]:
        draw(page, PICTURE)
    elif told(PICTURE) != metadata(page):
        line = page[: page.index(f'### {ARMS[0]}')].count('\n') + 1
        script = Path(__file__).resolve().relative_to(ROOT)
        where = f'{PAGE.relative_to(ROOT)}:{line}'
        exit_with([f'{where}: {PICTURE.name} is not of these tables; run: python {script}'])
