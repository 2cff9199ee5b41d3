# SPDX-License-Identifier: Apache-2.0
"""The base parameters for people, as text, and for programs, as JSON-able records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from robodyn_ros.parameters.base_parameters import BaseParameters
from robodyn_ros.parameters.combinations import length_symbol

# Values this small against the largest of their unit are shown as zero.
_ROUNDING = 1e-12


def parameters_report(base: BaseParameters, *, lengths: str = 'numbers') -> str:
    """
    Return the base parameters as text, link by link: value, unit and formula.

    Parameters
    ----------
    base : BaseParameters
    lengths : 'numbers', 'symbols' or 'paper'
        How formulas write lengths; see ``LinearCombination.text``.

    Raises
    ------
    UnknownOption
    """
    largest: dict[str, float] = defaultdict(float)
    for expression in base.expressions:
        largest[expression.unit] = max(largest[expression.unit], abs(expression.value))
    values = [
        f'{x.value:.6g}' if abs(x.value) > _ROUNDING * largest[x.unit] else '0'
        for x in base.expressions
    ]
    name_width = max(map(len, base.names), default=0)
    value_width = max(map(len, values), default=0)
    unit_width = max((len(expression.unit) for expression in base.expressions), default=0)
    lines = [
        f'{base.count} base (minimal) parameters out of {base.standard_count} standard ones, '
        f'gravity {_vector_text(base.standard.model.gravity)} m/s²',
        f'condition number {base.conditioning:.3g}; '
        f'regrouping changes the regressor by {base.residual:.1g} of its largest element',
    ]
    if base.depends_on_tolerance:
        fewest, most = base.count_range
        lines.append(
            f'the geometry is close to a singular one: {fewest} to {most} parameters, '
            'depending on the tolerance'
        )
    link = None
    for expression, value in zip(base.expressions, values, strict=True):
        if expression.link != link:
            link = expression.link
            lines += ['', link]
        _, _, formula = expression.text(lengths).partition(' = ')
        lines.append(
            f'  {expression.name:<{name_width}}  {value:>{value_width}} '
            f'{expression.unit:<{unit_width}}  {formula}'
        )
    lines += ['', f'without effect: {" ".join(base.no_effect) or "none"}']
    if lengths != 'numbers' and base.expressions:
        named = (
            f'{length_symbol(name, lengths)} = {value:.6g}'
            for name, value in base.expressions[0].lengths.items()
        )
        lines.append(f'lengths [m]: {", ".join(named) or "none"}')
    return '\n'.join(lines)


def parameters_record(base: BaseParameters) -> dict[str, Any]:
    """Return the base parameters for JSON: numbers, strings, lists and dicts only."""
    model = base.standard.model
    lengths = dict(base.expressions[0].lengths) if base.expressions else {}
    return {
        'joint_names': list(model.joint_names),
        'gravity': model.gravity.tolist(),
        'count': base.count,
        'classical_count': base.standard_count,
        'count_range': list(base.count_range),
        'depends_on_tolerance': base.depends_on_tolerance,
        'tolerance': base.tolerance,
        'conditioning': base.conditioning,
        'residual': base.residual,
        'lengths': lengths,
        'parameters': [expression.as_dict() for expression in base.expressions],
        'no_effect': list(base.no_effect),
    }


def _vector_text(vector: Any) -> str:
    return '(' + ', '.join(f'{component:g}' for component in vector) + ')'
