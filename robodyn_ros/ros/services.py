# SPDX-License-Identifier: Apache-2.0
"""What the services answer: convert the request, call one core function, convert the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from robodyn_interfaces.srv import GetDHParameters, GetMassMatrix
from robodyn_ros.dynamics import mass_matrix
from robodyn_ros.errors import RobodynError, UnknownOption
from robodyn_ros.model import RobotModel
from robodyn_ros.ros import conversions


def _answering(service: Callable[..., None]) -> Callable[..., Any]:
    """Return the service with its errors as ``success`` and ``message`` of the answer."""

    @wraps(service)
    def answer(model: RobotModel | None, request: Any, response: Any, *rest: Any) -> Any:
        response.success = False
        if model is None:
            response.message = 'no robot: the node is not configured'
            return response
        try:
            service(model, request, response, *rest)
        except RobodynError as error:
            response.message = str(error)
        else:
            response.success = True
            response.joint_names = list(model.joint_names)
        return response

    return answer


@_answering
def get_mass_matrix(
    model: RobotModel,
    request: GetMassMatrix.Request,
    response: GetMassMatrix.Response,
    measured: np.ndarray | None,
) -> None:
    """Answer with M(q) at the given position or at the measured one, shape (n,) or None."""
    position = np.asarray(request.position)
    if len(position) == 0:
        if measured is None:
            raise UnknownOption(
                'request position', [], f'{model.n} positions: no joint state was received yet')
        position = measured
    response.mass_matrix = conversions.matrix(mass_matrix(model, position))


@_answering
def get_dh_parameters(
    model: RobotModel,
    request: GetDHParameters.Request,
    response: GetDHParameters.Response,
) -> None:
    """Answer with the DH table in the convention asked for."""
    tables = {'': lambda: model.dh, 'modified': lambda: model.dh, 'standard': model.dh.standard}
    if request.convention not in tables:
        raise UnknownOption('request convention', request.convention, 'modified, standard')
    table = tables[request.convention]()
    response.prismatic = [bool(value) for value in table.prismatic]
    for name in ('alpha', 'a', 'beta', 'd', 'theta'):
        setattr(response, name, conversions.floats(getattr(table, name)))
    response.base_transform = conversions.transform(table.base_transform)
    response.tip_transform = conversions.transform(table.tip_transform)
