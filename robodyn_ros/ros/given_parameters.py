# SPDX-License-Identifier: Apache-2.0
"""
What a user gives as parameters, in the words that users choose.

A whole number is taken where a number is meant, and one number for a list. A name that is almost
one of the node's is refused with the right one: rclpy would ignore it without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.exceptions import InvalidTopicNameException, ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.validate_topic_name import validate_topic_name

from robodyn_ros.errors import RobodynError, UnknownOption

_TYPES: dict[str, Parameter.Type] = {
    'bool': Parameter.Type.BOOL,
    'integer': Parameter.Type.INTEGER,
    'string': Parameter.Type.STRING,
    'double': Parameter.Type.DOUBLE,
    'double[]': Parameter.Type.DOUBLE_ARRAY,
    'string[]': Parameter.Type.STRING_ARRAY,
}
_WANTED: dict[str, str] = {
    'bool': 'true or false',
    'integer': 'a whole number',
    'string': 'text',
    'double': 'a number',
    'double[]': 'a number, or a list of numbers',
    'string[]': 'a list of texts',
}
_CONVERSIONS: dict[tuple[str, Parameter.Type], Callable[[Any], Any]] = {
    ('double', Parameter.Type.INTEGER): float,
    ('double[]', Parameter.Type.INTEGER): lambda value: [float(value)],
    ('double[]', Parameter.Type.DOUBLE): lambda value: [value],
    ('double[]', Parameter.Type.INTEGER_ARRAY): lambda value: [float(v) for v in value],
    ('string[]', Parameter.Type.STRING): lambda value: [value],
}

_SIMILARITY = 0.75  # of two names, by difflib, from which one may be meant by the other
_LONGEST_SLIP = 50  # characters of a name that may be meant for another
# What the library lets a caller choose, and what a node's user can do.
_REMEDIES = {
    ('mimic', 'independent'): 'a tip_link before it, or a URDF without its <mimic> where it has a '
    'drive of its own'
}
_OF_EVERY_NODE = ('qos_overrides.', 'use_sim_time', 'start_type_description_service')


@dataclass(frozen=True)
class GivenParameter:
    """
    A parameter that a node takes.

    Parameters
    ----------
    name : str
    kind : str
        Its type as ROS writes it: bool, integer, string, double, double[] or string[].
    default : bool, str, float, list or None
        None where it is not set unless it is given.
    description : str
    descriptor : ParameterDescriptor
        Its ranges, and whether it may be changed.
    """

    name: str
    kind: str
    default: Any
    description: str
    descriptor: ParameterDescriptor


def read_once(name: str, kind: str, default: Any, description: str) -> GivenParameter:
    """Return a parameter that does not change while the node runs."""
    return GivenParameter(name, kind, default, description, ParameterDescriptor(read_only=True))


def declare(node: Node, parameters: Sequence[GivenParameter]) -> None:
    """
    Declare parameters on a node, with what the user gives converted and checked.

    Raises
    ------
    UnknownOption
        A name is almost one of the node's, or a value is of another type. Every other name that is
        not the node's is named in one warning.
    ParameterException
        A value is out of its range.
    """
    known = {parameter.name: parameter for parameter in parameters}
    # rclpy has no public way to see what is given for parameters that are not declared.
    given = node._parameter_overrides
    _check_names(node, given, known)
    for name in given.keys() & known.keys():
        given[name] = _checked(converted(given[name], known[name].kind), known[name])
        if given[name].type_ == Parameter.Type.NOT_SET:
            del given[name]
    for parameter in parameters:
        default = _TYPES[parameter.kind] if parameter.default is None else parameter.default
        descriptor = parameter.descriptor
        descriptor.description = parameter.description
        node.declare_parameter(parameter.name, default, descriptor)
    node.add_pre_set_parameters_callback(
        lambda changes: [_changed(node, change, known) for change in changes]
    )


def converted(parameter: Parameter, kind: str) -> Parameter:
    """Return a parameter with a value of a kind where it is meant so; else as it is."""
    conversion = _CONVERSIONS.get((kind, parameter.type_))
    if conversion is None:
        return parameter
    return Parameter(parameter.name, _TYPES[kind], conversion(parameter.value))


def check_name(parameter: str, name: str) -> None:
    """
    Refuse a parameter that cannot be the name of a node or a topic.

    Raises
    ------
    UnknownOption
    """
    try:
        validate_topic_name(name)
    except InvalidTopicNameException as error:
        raise UnknownOption(
            f'parameter {parameter}', name, 'a name as ROS has them: letters, digits, _ and /'
        ) from error


def in_parameters(error: Exception) -> str:
    """Return an error's text; what it offers is what a node's user can do."""
    if isinstance(error, RobodynError) and error.choice is not None:
        allowed = f'{error.allowed}, {_REMEDIES[error.choice]}'
        return str(type(error)(error.element, error.value, allowed))
    return str(error)


def similar_name(name: str, known: Iterable[str]) -> str:
    """
    Return which of the known names are meant by a name, in words; empty: none.

    These are the ones that are spelt almost the same, and all under the same prefix.
    """
    if len(name) > _LONGEST_SLIP:  # a request may hold a thousand of any length
        return ''
    by_spelling = {_spelling(one): one for one in known}
    close = difflib.get_close_matches(_spelling(name), by_spelling, 1, _SIMILARITY)
    if close:
        return by_spelling[close[0]]
    first = name.lower().partition('.')[0]
    return ', '.join(one for one in by_spelling.values() if one.partition('.')[0] == first)


def _spelling(name: str) -> str:
    return name.lower().replace('.', '_').replace('-', '_').replace('/', '_')


def _check_names(
    node: Node, given: Mapping[str, Parameter], known: Mapping[str, GivenParameter]
) -> None:
    others = []
    for name in sorted(given.keys() - known.keys()):
        if name.startswith(_OF_EVERY_NODE) or node.has_parameter(name):
            continue
        similar = similar_name(name, known)
        if similar:
            raise UnknownOption(f'parameter {name}', given[name].value, similar)
        others.append(name)
    if others:
        node.get_logger().warning(
            f'this node has no parameter {", ".join(others)}: ignored; --help names all it has'
        )


def _checked(given: Parameter, parameter: GivenParameter) -> Parameter:
    """Return a given value that is of the parameter's type, or none for one without default."""
    if given.type_ == _TYPES[parameter.kind]:
        return given
    if given.type_ == Parameter.Type.NOT_SET and parameter.default in (None, ['']):
        return given  # an empty list, which has no type
    wanted = _WANTED[parameter.kind]
    raise UnknownOption(f'parameter {given.name}', given.value, wanted)


def _changed(node: Node, change: Parameter, known: Mapping[str, GivenParameter]) -> Parameter:
    """Return a change as it is meant; refuse one of a parameter that the node does not have."""
    if change.name in known:
        return converted(change, known[change.name].kind)
    if not node.has_parameter(change.name):
        similar = similar_name(change.name, known)
        hint = f'; meant is perhaps {similar}' if similar else ''
        raise ParameterNotDeclaredException(f'{change.name}{hint}')
    return change
