# SPDX-License-Identifier: Apache-2.0
"""
An identification as YAML text, and back: records become mappings, arrays nested lists.

Every number reads back bit by bit. The model is stored whole, so that nothing else is needed to
use it, and with a digest of its kinematics, so that it is not used for another robot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import yaml

from robodyn_ros.description.records import Finding
from robodyn_ros.description.source import bytes_of_file
from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.errors import MalformedData, Phrase, RobodynError
from robodyn_ros.identification.comparison import CandidateError, RecordingErrors
from robodyn_ros.identification.parameters import IdentifiedParameter, bare_base_parameters
from robodyn_ros.identification.prediction import DriveModel
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import BaseParameters
from robodyn_ros.spatial import FloatArray

_FORMAT = 'robodyn identification 1'
_LARGEST = 64 * 2**20
_DUMPER = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
# What the fields of an identification are, in the order that people want to read them.
_FIELDS: dict[str, Any] = {
    'kinematics': str,
    'converged': bool,
    'cutoff': float,
    'delay': float,
    'delay_deviation': float,
    'base_tilt': FloatArray,
    'base_tilt_deviation': FloatArray,
    'errors': tuple[RecordingErrors, ...],
    'candidates': tuple[CandidateError, ...],
    'findings': tuple[Finding, ...],
    'parameters': tuple[IdentifiedParameter, ...],
    'drive_model': DriveModel,
}
_OF_JOINTS = (
    'rotor_inertia',
    'viscous_friction',
    'coulomb_friction',
    'effort_offset',
    'load_friction',
)
# Fields that files from before there were any do not have.
_LATER = (
    {'coupling', 'coupled_rotor_inertia', 'coupled_friction'},
    {'parents', 'gamma', 'b', 'tips'},
)
# That users may add; it is left out where it is not known.
_COMMAND_SCALE = 'command_scale'


def write_fields(path: Path, values: Mapping[str, Any]) -> None:
    """
    Write the fields of an identification as YAML.

    Parameters
    ----------
    path : Path
    values : mapping of field name to value
    """
    document = {'format': _FORMAT, **{name: _plain(values[name]) for name in _FIELDS}}
    if values[_COMMAND_SCALE] is not None:
        document[_COMMAND_SCALE] = _plain(values[_COMMAND_SCALE])
    text = yaml.dump(document, Dumper=_DUMPER, default_flow_style=None, sort_keys=False, width=99)
    path.write_text('# Written by robodyn identify; numbers are exact.\n' + text, encoding='utf-8')


def read_fields(path: Path) -> dict[str, Any]:
    """
    Return the fields of an identification in a YAML file.

    Raises
    ------
    UnreadableSource
        There is no such file, or it is too large.
    MalformedData
        It holds no identification.
    """
    content = bytes_of_file(path, _LARGEST, 'identified model')
    try:
        documents = parsed_yaml(content)
    except yaml.YAMLError as error:
        raise MalformedData(
            'identified model', Phrase(str(error)), 'YAML without aliases'
        ) from error
    document = documents[0] if len(documents) == 1 else None
    if not isinstance(document, dict) or document.get('format') != _FORMAT:
        found = document.get('format') if isinstance(document, dict) else type(document).__name__
        raise MalformedData('format', found, repr(_FORMAT))
    try:
        result = {name: _restored(hint, document[name]) for name, hint in _FIELDS.items()}
        scale = document.get(_COMMAND_SCALE)
        result[_COMMAND_SCALE] = None if scale is None else _restored(FloatArray, scale)
        drive_model: DriveModel = result['drive_model']
        _check_shapes(drive_model, result)
    except (KeyError, TypeError, ValueError, AttributeError, RobodynError) as error:
        raise MalformedData(
            'identified model',
            Phrase(f'no {error}' if isinstance(error, KeyError) else str(error)),
            'all fields, as written',
        ) from error
    return {**result, 'model': drive_model.model, 'covariance': drive_model.covariance}


def _check_shapes(drive_model: DriveModel, values: Mapping[str, Any]) -> None:
    model, count = drive_model.model, len(values['parameters'])
    terms = drive_model.terms
    known = drive_model.base.count + model.n * terms.count
    known += len(model.coupling) * terms.coupled_count
    if count != known:
        raise ValueError(f'parameters: {count}, where the drives and the base have {known}')
    shapes = {
        'inertial_parameters': (model.inertial_parameters, (model.n, 10)),
        'coefficients': (drive_model.coefficients, (model.n, drive_model.terms.count)),
        'covariance': (drive_model.covariance, (count, count)),
        'residual': (drive_model.residual, (model.n,)),
        'effort_scale': (drive_model.effort_scale, (model.n,)),
    }
    shapes |= {name: (getattr(model, name), (model.n,)) for name in _OF_JOINTS}
    m = len(model.coupling)
    shapes |= {
        'friction_curve': (model.friction_curve, (model.n, 2)),
        'coupling': (model.coupling, (m, model.n)),
        'coupled_rotor_inertia': (model.coupled_rotor_inertia, (m,)),
        'coupled_friction': (model.coupled_friction, (m, 4)),
    }
    scales = {'effort_scale': drive_model.effort_scale}
    if values[_COMMAND_SCALE] is not None:
        scales[_COMMAND_SCALE] = values[_COMMAND_SCALE]
        shapes[_COMMAND_SCALE] = (values[_COMMAND_SCALE], (model.n,))
    for name, (array, shape) in shapes.items():
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f'{name} has shape {array.shape}, not {shape} of finite numbers')
    for name, array in scales.items():
        if not array.all():
            raise ValueError(f'{name} is 0 for a joint: {array.tolist()}')
    if kinematics_digest(model) != values['kinematics']:
        raise ValueError('the digest is not that of the kinematics in the file')


def _plain(value: Any) -> Any:
    """Return mappings, lists and numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, BaseParameters):
        return None
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    return value


def _restored(hint: Any, value: Any) -> Any:
    """Return a value of the hinted type out of mappings, lists and numbers."""
    origin = get_origin(hint)
    if origin is np.ndarray or hint is np.ndarray:
        array = np.array(value)
        is_index = bool(get_args(hint)) and np.int_ in get_args(get_args(hint)[-1])
        array = array if array.dtype == bool else array.astype(int if is_index else float)
        array.setflags(write=False)
        return array
    if origin is tuple:
        inner = get_args(hint)
        if inner[-1] is Ellipsis:
            return tuple(_restored(inner[0], entry) for entry in value)
        return tuple(_restored(each, entry) for each, entry in zip(inner, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _, inner_hint = get_args(hint)
        return {key: _restored(inner_hint, entry) for key, entry in value.items()}
    if hint is DriveModel:
        return _restored_drive_model(value)
    if is_dataclass(hint) and isinstance(hint, type):
        return hint(**_restored_fields(hint, value))
    if hint is Any:
        return tuple(value) if isinstance(value, list) else value
    if hint in (str, float, int, bool):
        return hint(value)
    return value


def _restored_fields(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    names = {field.name for field in fields(kind)}
    if 'tip_link' in value:  # of a model, from before there were several
        value = {**value, 'tip_links': [value['tip_link']]}
    missing = names - set(value)
    for later in _LATER:
        names -= later if later <= missing else set()
    return {name: _restored(hints[name], value[name]) for name in sorted(names)}


def _restored_drive_model(value: Mapping[str, Any]) -> DriveModel:
    hints = get_type_hints(DriveModel)
    known = {
        name: _restored(hints[name], value[name])
        for name in hints
        if name in value and name != 'base'
    }
    model: RobotModel = known['model']
    return DriveModel(**known, base=bare_base_parameters(model))
