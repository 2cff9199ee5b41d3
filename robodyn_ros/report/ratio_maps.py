# SPDX-License-Identifier: Apache-2.0
"""Maps of the ratios R_ij and K_i over two joints, for a report."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from robodyn_ros.analysis.largest_ratios import LargestRatios, largest_ratios, telling_map
from robodyn_ros.analysis.ratios import RatioMap
from robodyn_ros.model import RobotModel
from robodyn_ros.report.svg import inline_svg

_COLORS = matplotlib.colormaps['cividis']
_ROUNDING = 1e-9
_RESOLUTION = 49


@dataclass(frozen=True)
class RatioFacts:
    """
    The largest ratios of an arm, and maps of two of them.

    Attributes
    ----------
    largest : LargestRatios
    maps : tuple of (joints, RatioMap)
        Of the largest coupling of two joints of one kind, and of gravity where it is largest;
        joints from 0: where it is felt and, for a coupling, what causes it.
    """

    largest: LargestRatios
    maps: tuple[tuple[tuple[int, ...], RatioMap], ...]


def ratio_facts(model: RobotModel) -> RatioFacts:
    """
    Return the ratios of an arm over its joint limits.

    Raises
    ------
    InvalidNumber
        See ``JointSpace.of``.
    """
    found = largest_ratios(model)
    names = model.joint_names
    maps: list[tuple[tuple[int, ...], RatioMap]] = []
    if model.n > 1:
        coupling = np.array(found.coupling)
        # Between a slide and a turn it is no number: metres would compete with radians.
        of_one_kind = np.equal.outer(model.dh.prismatic, model.dh.prismatic)
        coupling[~of_one_kind | np.eye(model.n, dtype=bool)] = 0.0
        i, j = (int(k) for k in np.unravel_index(coupling.argmax(), coupling.shape))
        if coupling[i, j] > _ROUNDING:
            table = telling_map(model, names[i], names[j], resolution=_RESOLUTION)
            maps.append(((i, j), table))
        i = int(np.argmax(found.gravity))
        if found.gravity[i] > _ROUNDING:
            maps.append(((i,), telling_map(model, names[i], resolution=_RESOLUTION)))
    return RatioFacts(found, tuple(maps))


def ratio_map_chart(model: RobotModel, found: RatioMap, name: str) -> str:
    """Return a map's magnitudes as colours."""
    a, b = (model.joint_names.index(joint) for joint in found.over)
    magnitudes = np.abs(np.array(found.values))

    def draw(axes: Axes) -> None:
        image = axes.imshow(
            magnitudes,
            origin='lower',
            aspect='auto',
            extent=(found.second[0], found.second[-1], found.first[0], found.first[-1]),
            cmap=_COLORS,
            vmin=0.0,
            interpolation='none',
        )
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.06, pad=0.03)
        bar.outline.set_visible(False)
        bar.locator = MaxNLocator(5)
        axes.set_xlabel(f'q{b + 1} [{found.position_units[1]}]')
        axes.set_ylabel(f'q{a + 1} [{found.position_units[0]}]')

    what = {'R': 'Coupling by acceleration', 'K': 'Gravity by acceleration'}[found.symbol[0]]
    label = f'{what} over q{a + 1} and q{b + 1}'
    return inline_svg(draw, 360, 280, name=name, label=label)
