# SPDX-License-Identifier: Apache-2.0
"""The table of parameters on a ROS node."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from robodyn_ros.control.parameter_table import PARAMETERS, NodeParameter
from robodyn_ros.ros import given_parameters
from robodyn_ros.ros.given_parameters import GivenParameter


def declare(node: Node) -> None:
    """
    Declare the whole table on a node.

    Raises
    ------
    UnknownOption
        What is given is almost one of the table, or of another type.
    ParameterException
        A value is out of its range.
    """
    given_parameters.declare(node, given())


def values(node: Node) -> dict[str, Any]:
    """Return the present value of every parameter of the table by its name."""
    unset = Parameter('unset', Parameter.Type.STRING_ARRAY, [])
    return {
        parameter.name: node.get_parameter_or(parameter.name, unset).value
        for parameter in PARAMETERS
    }


def given() -> list[GivenParameter]:
    """Return the whole table as ROS declares it."""
    return [given_parameter(parameter) for parameter in PARAMETERS]


def given_parameter(parameter: NodeParameter) -> GivenParameter:
    """Return a row of the table as ROS declares it."""
    descriptor = ParameterDescriptor(
        read_only=parameter.is_read_only,
        additional_constraints='; '.join(
            filter(None, [parameter.allowed, f'may change {parameter.change}'])
        ),
    )
    if parameter.bounds and isinstance(parameter.default, float):
        low, high = parameter.bounds
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    default = parameter.default
    if parameter.name == 'joints':
        # An empty list in YAML has no type; [''] is the usual way to write one.
        default = ['']
    elif isinstance(default, tuple):
        # An empty list has no type in Python either: declared by type, it is unset.
        default = list(default) or None
    return GivenParameter(
        parameter.name, parameter.kind, default, parameter.description, descriptor
    )
