# SPDX-License-Identifier: Apache-2.0
"""
The page itself: facts and figures in a template that escapes its input.

Only the style, the script and its numbers, and what ``svg`` made go in unescaped, and no name of a
URDF is in them. By its content security policy the page forbids every other script, and everything
from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.ranges import Range
from robodyn_ros.dh.table import DHTable, row_formula, table_rows
from robodyn_ros.identification import Identification, Recording
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters.combinations import LinearCombination
from robodyn_ros.report.arm_in_space import (
    masses_left_out,
    numbers_for_script,
    script,
    script_digest,
)
from robodyn_ros.report.charts import (
    PARTS,
    call_time_chart,
    coupling_map,
    coupling_matrix,
    range_chart,
    simplification_matrix,
    torque_chart,
)
from robodyn_ros.report.facts import STEPS, ArmFacts, slider_ranges, turned_once
from robodyn_ros.report.identification_page import identification_values
from robodyn_ros.report.template import rendered_page
from robodyn_ros.report.text import (
    NOISE,
    matrix_rows,
    plural,
    quantity,
    shortened,
    true_minus,
    unbroken,
)
from robodyn_ros.spatial import FloatArray, inertia_tensor, skew

_LONGEST_FORMULAS = 1500
_MOST_ALERTS = 3
_MOST_SYMBOLS = 400
_MOST_COLUMNS = 10
_LEAST_GRAVITY = 1e-9  # [N m or N]
_LARGEST_ERROR = 0.1  # of the torque in a recording, from which on a model is doubted


@dataclass(frozen=True)
class SignOff:
    """
    Whose robot a report is of, and who signs it; what is empty is left to be filled in on paper.

    Attributes
    ----------
    robot, serial_number : str
        The robot's own name and number, which no URDF has.
    author, company : str
    """

    robot: str = ''
    serial_number: str = ''
    author: str = ''
    company: str = ''

    @property
    def fields(self) -> dict[str, str]:
        """Each value under what a page calls it."""
        return {
            'robot': self.robot,
            'serial number': self.serial_number,
            'author': self.author,
            'company': self.company,
        }


def report_page(
    facts: ArmFacts,
    identification: Identification | None = None,
    shown: Recording | None = None,
    *,
    sign_off: SignOff | None = None,
) -> str:
    """
    Return the report as HTML text.

    Parameters
    ----------
    facts : ArmFacts
    identification : Identification, optional
        Of that arm: the page shows what it changes.
    shown : Recording, optional
        The motion that measured and predicted efforts are drawn of; given with it.
    sign_off : SignOff, optional
        What its first page says of the robot and of the author.
    """
    model = facts.model
    of = None
    if identification is not None and shown is not None:
        of = identification_values(identification, model, shown)
    joints = _joints(facts)
    findings = [*model.findings, *(of['warnings'] + of['remarks'] if of else ())]
    return rendered_page(
        'page.html.jinja',
        facts=facts,
        of=of,
        doubts=list(_doubts(facts, of, joints)),
        model=model,
        script=script(),
        script_digest=script_digest(),
        numbers=numbers_for_script(model, _bent(facts)),
        tables=[_table(table) for table in _dh_tables(model)],
        transforms=[
            (f'{model.base_link} to frame 0', matrix_rows(model.dh.base_transform)),
            *(
                (f'frame {body + 1} to {tip}', matrix_rows(placed))
                for tip, body, placed in zip(
                    model.tip_links, model.dh.tips, model.dh.tip_transforms, strict=True
                )
            ),
        ],
        links=_links(facts),
        alerts=[each for each in findings if each.level == 'warning'][:_MOST_ALERTS],
        sign_off=(sign_off or SignOff()).fields,
        left_out=[f'q{k + 1}' for k in masses_left_out(model, _bent(facts))],
        has_gravity=facts.ranges is not None and _has_gravity(facts.ranges.gravity),
        is_shorter=_is_shorter(facts),
        levels=[finding.level for finding in findings],
        lengths=facts.base.expressions[0].lengths if facts.base.expressions else {},
        parameters=_parameters(facts),
        vanishing=[x.symbol for x in facts.structure.coefficients if not x.nonzero],
        most_symbols=_MOST_SYMBOLS,
        joints=joints,
        parts=PARTS,
        steps=STEPS,
        simplified_formulas=_simplified_formulas(facts),
        no_gravity_at=[
            (k + 1, model.joint_names[k])
            for k, found in enumerate(facts.simplified.gravity if facts.simplified else ())
            if not found.formula.terms
        ],
        longest_formulas=_LONGEST_FORMULAS,
        figures=dict(_figures(facts)),
        maps=_map_captions(facts),
        strongest=_strongest(facts),
        split=_split_rows(facts),
    )


def _doubts(
    facts: ArmFacts, of: Mapping[str, Any] | None, joints: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield why the description is not simply used: of all that the page shows."""
    if count := [each.level for each in facts.model.findings].count('warning'):
        yield plural(count, 'warning')
    for what, share in (('gravity', 'gravity_fraction'), ('the motion', 'peak_fraction')):
        beyond = [f'q{each["index"]}' for each in joints if (each[share] or 0.0) > 1.0]
        if beyond:
            yield f'{what} exceeds the effort limit of {", ".join(beyond)}'
    if of is None:
        return
    if of['warnings']:
        yield f'{plural(len(of["warnings"]), "warning")} of the recording'
    off = {name: of['judged'].relative(name) for name in ('urdf', 'identified')}
    if max(off.values()) > _LARGEST_ERROR:
        urdf, identified = (quantity(100 * each, '%', 2) for each in off.values())
        yield f'its torque is {urdf} off the recording, that of the identified model {identified}'


def _figures(facts: ArmFacts) -> Iterable[tuple[str, str]]:
    """Yield every figure of the page and its name, which begins with that of its section."""
    model = facts.model
    if facts.coupling and model.n > 1:
        yield 'coupling', coupling_matrix(facts.coupling, 'coupling')
        # One scale for all, so that the same colour is the same coupling.
        largest = max((float(each.values.max()) for each in facts.coupling.maps), default=1.0)
        for k, found in enumerate(facts.coupling.maps):
            name = f'coupling-map-{k}'
            yield name, coupling_map(found, model.dh.prismatic, name, max(largest, 1e-9))
    if facts.ranges:
        yield from _range_figures(facts.ranges.inertia, 'inertia', model.dh.prismatic)
        yield from _range_figures(facts.ranges.gravity, 'gravity', model.dh.prismatic)
    if facts.torques:
        for k in range(model.n):
            unit = 'N' if model.dh.prismatic[k] else 'N m'
            yield f'torque-{k}', torque_chart(facts.torques, k, unit, f'torque-{k}')
    if facts.simplified and _is_shorter(facts):
        yield 'simplified', simplification_matrix(facts.simplified, 'simplified')
    yield 'call-times', call_time_chart(facts.call_times, 'call-times')


def _range_figures(
    ranges: tuple[Range, ...], what: str, prismatic: NDArray
) -> Iterable[tuple[str, str]]:
    """Yield a figure for the revolute joints and one for the prismatic ones."""
    logarithmic = what == 'inertia'
    for kind, is_prismatic in (('revolute', False), ('prismatic', True)):
        joints = [
            k
            for k, found in enumerate(ranges)
            if prismatic[k] == is_prismatic and (found.relative or not logarithmic)
        ]
        if joints and (what == 'inertia' or _has_gravity([ranges[k] for k in joints])):
            name = f'range-{what}-{kind}'
            yield (
                name,
                range_chart(
                    ranges, name, label=f'Range of {what}', joints=joints, logarithmic=logarithmic
                ),
            )


def _has_gravity(ranges: Iterable[Range]) -> bool:
    """Return whether gravity takes a torque anywhere at any of some joints."""
    return any(abs(found.peak.value) > _LEAST_GRAVITY for found in ranges)


def _is_shorter(facts: ArmFacts) -> bool:
    """Return whether the simplified model leaves any term out."""
    found = facts.simplified
    return found is not None and any(x.dropped_terms for x in (*found.inertia, *found.gravity))


def _bent(facts: ArmFacts) -> FloatArray:
    """Return where the motion begins (n,), or the middle of the ranges where there is none."""
    if facts.torques:
        return facts.torques.motion.q[0]
    limits = facts.model.position_limits
    return np.where(np.isfinite(limits).all(axis=1), np.nan_to_num(limits).mean(axis=1), 0.0)


def _table(table: DHTable) -> dict[str, Any]:
    header, *rows = table_rows(table)
    return {
        'convention': table.convention,
        'formula': row_formula(table),
        'header': header,
        'rows': [[true_minus(cell) for cell in row] for row in rows],
    }


def _dh_tables(model: RobotModel) -> list[DHTable]:
    """Return the table, and of a chain the standard one."""
    return [model.dh, model.dh.standard()] if model.dh.is_chain else [model.dh]


def _parameters(facts: ArmFacts) -> list[list[tuple[LinearCombination, str]]]:
    """Return the base parameters with their formulas: those that are not zero, and the others."""
    found = facts.base.expressions
    formulas = shortened([each.text('symbols').partition(' = ')[2] for each in found])
    rows = list(zip(found, formulas, strict=True))
    return [[row for row in rows if (abs(row[0].value) > NOISE) == kind] for kind in (True, False)]


def _links(facts: ArmFacts) -> list[dict[str, Any]]:
    """Return mass, centre of mass and principal moments about it, for each link."""
    links = []
    bodies = facts.chain.bodies[1:]
    for joint, body, row in zip(facts.chain.joints, bodies, facts.model.inertial_parameters):
        mass = row[9]
        center = row[6:9] / mass if mass else np.zeros(3)
        about_center = inertia_tensor(row) + mass * skew(center) @ skew(center)
        links.append(
            {
                'name': joint.child,
                'others': [name for name in body.link_transforms if name != joint.child],
                'mass': mass,
                'center': center,
                'moments': np.linalg.eigvalsh(about_center),
            }
        )
    return links


def _joints(facts: ArmFacts) -> list[dict[str, Any]]:
    """Return what the page says of each joint."""
    model, off = facts.model, facts.simplified_torque_error
    sliders = np.column_stack([slider_ranges(model), _bent(facts)])
    once = turned_once(model)
    joints = []
    for k, name in enumerate(model.joint_names):
        prismatic = bool(model.dh.prismatic[k])
        peak = np.abs(facts.torques.total[:, k]).max() if facts.torques else None
        limit = model.effort_limits[k]
        known = 0 < limit < np.inf
        gravity = facts.ranges.gravity[k] if facts.ranges else None
        joints.append(
            {
                'index': k + 1,
                'name': name,
                'kind': facts.chain.joints[k].kind,
                'simplified_error': off[k] if off is not None else None,
                'unit': 'N' if prismatic else 'N m',
                'position_unit': 'm' if prismatic else 'rad',
                'limits': model.position_limits[k],
                'turned_once': bool(once[k]),
                'slider': sliders[k].tolist(),
                'velocity': model.velocity_limits[k],
                'limit': limit if known else None,
                'peak': peak,
                'peak_fraction': peak / limit if known and peak is not None else None,
                'gravity': gravity,
                'gravity_fraction': abs(gravity.peak.value) / limit if known and gravity else None,
                'inertia': facts.ranges.inertia[k] if facts.ranges else None,
            }
        )
    return joints


def _simplified_formulas(facts: ArmFacts) -> list[str]:
    if facts.simplified is None:
        return []
    return [
        f'{true_minus(str(found.formula))}  [{unbroken(found.formula.unit)}]'
        for found in facts.simplified.gravity
        if found.formula.terms
    ]


def _map_captions(facts: ArmFacts) -> list[dict[str, Any]]:
    names = facts.model.joint_names
    return [
        {
            'figure': f'coupling-map-{k}',
            'pair': [(j + 1, names[j]) for j in found.pair],
            'over': [(j + 1, names[j]) for j in found.over],
        }
        for k, found in enumerate(facts.coupling.maps if facts.coupling else ())
    ]


def _strongest(facts: ArmFacts) -> list[dict[str, Any]]:
    """Return which joint acts most on each, where a table of all would be too wide."""
    if facts.ratios is None or facts.model.n <= _MOST_COLUMNS:
        return []
    ratios = np.array(facts.ratios.coupling)
    np.fill_diagonal(ratios, -1.0)
    return [{'joint': int(row.argmax()) + 1, 'ratio': float(row.max())} for row in ratios]


def _split_rows(facts: ArmFacts) -> list[dict[str, Any]]:
    """Return the largest translational and rotational part of each element along the motion."""
    if facts.split is None:
        return []
    return [
        {
            'symbol': x.symbol,
            'unit': x.unit,
            'parts': [np.abs(part).max() for part in (x.translational, x.rotational)],
            'dominant': x.dominant,
        }
        for x in (*facts.split.inertia, *facts.split.coriolis)
    ]
