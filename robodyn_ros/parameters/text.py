# SPDX-License-Identifier: Apache-2.0
"""The base parameters for programs, as JSON-able records."""

from __future__ import annotations

from typing import Any

from robodyn_ros.parameters.base_parameters import BaseParameters


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
