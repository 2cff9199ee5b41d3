# SPDX-License-Identifier: Apache-2.0
"""
The parameters of a node on ROS: what a user gives is converted, checked and declared.

A whole number is taken where a number is meant, and one number for a list. A name that is almost
one of the node's is refused with the right one: rclpy would ignore it without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import InvalidTopicNameException, ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rclpy.validate_topic_name import validate_topic_name

from robodyn_ros import ros_parameters
from robodyn_ros.errors import InvalidArgument, RobodynError
from robodyn_ros.ros.rclpy_workarounds import given_overrides
from robodyn_ros.ros_parameters import Parameter

_TYPES: dict[str, RosParameter.Type] = {
    'bool': RosParameter.Type.BOOL,
    'integer': RosParameter.Type.INTEGER,
    'string': RosParameter.Type.STRING,
    'double': RosParameter.Type.DOUBLE,
    'double[]': RosParameter.Type.DOUBLE_ARRAY,
    'string[]': RosParameter.Type.STRING_ARRAY,
}
_WANTED: dict[str, str] = {
    'bool': 'true or false',
    'integer': 'a whole number',
    'string': 'text',
    'double': 'a number',
    'double[]': 'a number, or a list of numbers',
    'string[]': 'a list of texts',
}
_CONVERSIONS: dict[tuple[str, RosParameter.Type], Callable[[Any], Any]] = {
    ('double', RosParameter.Type.INTEGER): float,
    ('double[]', RosParameter.Type.INTEGER): lambda value: [float(value)],
    ('double[]', RosParameter.Type.DOUBLE): lambda value: [value],
    ('double[]', RosParameter.Type.INTEGER_ARRAY): lambda value: [float(v) for v in value],
    ('string[]', RosParameter.Type.STRING): lambda value: [value],
}

_SIMILARITY = 0.75  # of two names, by difflib, from which one may be meant by the other
_LONGEST_SLIP = 50  # characters of a name that may be meant for another
# What the library lets a caller choose, and what a node's user can do.
_REMEDIES = {
    ('mimic', 'independent'): 'a tip_link before it, or a URDF without its <mimic> where it has a '
    'drive of its own'
}
_OF_EVERY_NODE = ('qos_overrides.', 'use_sim_time', 'start_type_description_service')


def declare(node: Node, parameters: Sequence[Parameter], *, is_lifecycle: bool = False) -> None:
    """
    Declare parameters on a node, with what the user gives converted and checked.

    Parameters
    ----------
    node : Node
    parameters : sequence of Parameter
    is_lifecycle : bool
        Whether read-only parameters may change before configure; else no parameter ever changes.

    Raises
    ------
    InvalidArgument
        A name is almost one of the node's, or a value is of another type. Every other name that is
        not the node's is named in one warning.
    ParameterException
        A value is out of its range.
    """
    known = {parameter.name: parameter for parameter in parameters}
    given = given_overrides(node)
    _check_names(node, given, known)
    for name in given.keys() & known.keys():
        given[name] = _checked(converted(given[name], known[name].kind), known[name])
        if given[name].type_ == RosParameter.Type.NOT_SET:
            del given[name]
    for parameter in parameters:
        default: Any = parameter.default
        if default == ():
            # An empty list has no type. One of texts is usually written as ['']; one of numbers is
            # declared by its type, and is not set.
            default = [''] if parameter.kind == 'string[]' else _TYPES[parameter.kind]
        elif parameter.is_array:
            default = list(default)
        node.declare_parameter(parameter.name, default, _descriptor(parameter, is_lifecycle))
    node.add_pre_set_parameters_callback(
        lambda changes: [_changed(node, change, known) for change in changes]
    )


def values(node: Node, parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the present value of each declared parameter by its name; one not set is empty."""
    unset = RosParameter('unset', RosParameter.Type.STRING_ARRAY, [])
    return {p.name: node.get_parameter_or(p.name, unset).value for p in parameters}


def declared_values(node: Node, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """
    Declare the parameters of a node that reads them once, and return their values, checked.

    Raises
    ------
    InvalidArgument, ParameterException
        The parameter, its value and what is allowed.
    """
    declare(node, parameters)
    return ros_parameters.checked(parameters, values(node, parameters))


def constraints(parameter: Parameter, is_lifecycle: bool) -> str:
    """Return as text what values a parameter may have, and when it may change."""
    change = f'may change {parameter.change}' if is_lifecycle else ''
    return '; '.join(filter(None, [parameter.allowed, change]))


def _descriptor(parameter: Parameter, is_lifecycle: bool) -> ParameterDescriptor:
    result = ParameterDescriptor(
        description=parameter.description,
        read_only=not is_lifecycle or parameter.constraints == ros_parameters.AT_START,
        additional_constraints=constraints(parameter, is_lifecycle),
    )
    if parameter.has_range:
        low, high = parameter.bounds or (0.0, 0.0)
        result.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return result


def converted(parameter: RosParameter, kind: str) -> RosParameter:
    """Return a parameter with a value of a kind where it is meant so; else as it is."""
    conversion = _CONVERSIONS.get((kind, parameter.type_))
    if conversion is None:
        return parameter
    return RosParameter(parameter.name, _TYPES[kind], conversion(parameter.value))


def check_name(parameter: str, name: str) -> None:
    """
    Refuse a parameter that cannot be the name of a node or a topic.

    Raises
    ------
    InvalidArgument
    """
    try:
        validate_topic_name(name)
    except InvalidTopicNameException as error:
        raise InvalidArgument(
            f'parameter {parameter}', name, 'a name as ROS has them: letters, digits, _ and /'
        ) from error


def in_parameters(error: Exception) -> str:
    """Return an error's text; what it offers is what a node's user can do."""
    if isinstance(error, RobodynError) and error.choice is not None:
        allowed = f'{error.allowed}, {_REMEDIES[error.choice]}'
        return str(type(error)(error.element, error.value, allowed, unit=error.unit))
    return str(error)


def similar_name(name: str, known: Iterable[str]) -> str:
    """
    Return which of the known names are meant by a name, as text; empty: none.

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
    node: Node, given: Mapping[str, RosParameter], known: Mapping[str, Parameter]
) -> None:
    others = []
    for name in sorted(given.keys() - known.keys()):
        if name.startswith(_OF_EVERY_NODE) or node.has_parameter(name):
            continue
        similar = similar_name(name, known)
        if similar:
            raise InvalidArgument(f'parameter {name}', given[name].value, similar)
        others.append(name)
    if others:
        node.get_logger().warning(
            f'this node has no parameter {", ".join(others)}: ignored; --help names all it has'
        )


def _checked(given: RosParameter, parameter: Parameter) -> RosParameter:
    """Return a given value that is of the parameter's type, or none for one without default."""
    if given.type_ == _TYPES[parameter.kind]:
        return given
    if given.type_ == RosParameter.Type.NOT_SET and parameter.default == ():
        return given  # an empty list, which has no type
    wanted = _WANTED[parameter.kind]
    raise InvalidArgument(f'parameter {given.name}', given.value, wanted)


def _changed(node: Node, change: RosParameter, known: Mapping[str, Parameter]) -> RosParameter:
    """Return a change as it is meant; refuse one of a parameter that the node does not have."""
    if change.name in known:
        return converted(change, known[change.name].kind)
    if not node.has_parameter(change.name):
        similar = similar_name(change.name, known)
        hint = f'; meant is perhaps {similar}' if similar else ''
        raise ParameterNotDeclaredException(f'{change.name}{hint}')
    return change
