# SPDX-License-Identifier: Apache-2.0
"""rclpy's parameter services with a bound on what one request may cost the control cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter_service import ParameterService

MOST_ENTRIES = 60
"""Of one request: more than there are parameters. Each that changes takes 0.7 ms."""

WARNING_PERIOD = 1.0  # requests that are refused are logged once in so long [s]


class BoundedParameterService(ParameterService):
    """
    Offers a node's parameters; make the node with ``start_parameter_services=False``.

    A request of more than ``MOST_ENTRIES`` is refused as a whole: a thousand entries held the
    control cycle up for 0.7 s.
    """

    def _describe_parameters_callback(self, request: Any, response: Any) -> Any:
        if self._refusal(request.names):
            return response
        return super()._describe_parameters_callback(request, response)

    def _get_parameters_callback(self, request: Any, response: Any) -> Any:
        if self._refusal(request.names):
            return response
        return super()._get_parameters_callback(request, response)

    def _get_parameter_types_callback(self, request: Any, response: Any) -> Any:
        if self._refusal(request.names):
            return response
        return super()._get_parameter_types_callback(request, response)

    def _set_parameters_callback(self, request: Any, response: Any) -> Any:
        refusal = self._refusal(request.parameters)
        if refusal:
            result = SetParametersResult(successful=False, reason=refusal)
            response.results = [result] * len(request.parameters)
            return response
        return super()._set_parameters_callback(request, response)

    def _set_parameters_atomically_callback(self, request: Any, response: Any) -> Any:
        refusal = self._refusal(request.parameters)
        if refusal:
            response.result = SetParametersResult(successful=False, reason=refusal)
            return response
        return super()._set_parameters_atomically_callback(request, response)

    def _refusal(self, entries: Sequence[Any]) -> str:
        """Return why so many entries are refused, after logging it; empty: they are not."""
        if len(entries) <= MOST_ENTRIES:
            return ''
        refusal = f'request: {len(entries)} parameters; allowed: at most {MOST_ENTRIES} at once'
        self._get_node().get_logger().warning(refusal, throttle_duration_sec=WARNING_PERIOD)
        return refusal
