# SPDX-License-Identifier: Apache-2.0
"""
Analysis of an arm's model: its coefficients, their ranges, and which of them matter.

>>> print(inertial_characteristics(model))
>>> print(ranges(model, payload=Payload(2.0)))
>>> print(simplified_model(model, 0.02, parts=['gravity']))

Results are plain records with their units, ``to_json`` and ``from_json``.
"""

from robodyn_ros.analysis.coupling import (
    Coupling,
    coefficients_of_coupling,
    coupling_over_joint_space,
    kinematic_factors,
    loading_factors,
)
from robodyn_ros.analysis.formulas import Factor, Formula, Term, gravity_formulas, inertia_formulas
from robodyn_ros.analysis.guidelines import Guideline, design_guidelines
from robodyn_ros.analysis.inertial_characteristics import (
    Coefficient,
    Count,
    InertialCharacteristics,
    inertial_characteristics,
)
from robodyn_ros.analysis.joint_space import Extreme, JointSpace
from robodyn_ros.analysis.ranges import Range, Ranges, ranges
from robodyn_ros.analysis.ratios import (
    RatioMap,
    coupling_ratio_map,
    coupling_ratio_range,
    coupling_ratios,
    gravity_ratio_map,
    gravity_ratio_range,
    gravity_ratios,
)
from robodyn_ros.analysis.simplification import (
    Operations,
    Simplification,
    SimplifiedModel,
    simplified_model,
)
from robodyn_ros.analysis.trajectory_split import SplitElement, TrajectorySplit, split_along

__all__ = [
    'Coefficient',
    'Count',
    'Coupling',
    'Extreme',
    'Factor',
    'Formula',
    'Guideline',
    'InertialCharacteristics',
    'Operations',
    'Range',
    'Ranges',
    'RatioMap',
    'Simplification',
    'SimplifiedModel',
    'SplitElement',
    'Term',
    'TrajectorySplit',
    'JointSpace',
    'coefficients_of_coupling',
    'coupling_over_joint_space',
    'coupling_ratio_map',
    'coupling_ratio_range',
    'coupling_ratios',
    'design_guidelines',
    'gravity_formulas',
    'gravity_ratio_map',
    'gravity_ratio_range',
    'gravity_ratios',
    'inertia_formulas',
    'inertial_characteristics',
    'kinematic_factors',
    'loading_factors',
    'ranges',
    'simplified_model',
    'split_along',
]
