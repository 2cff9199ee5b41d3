# SPDX-License-Identifier: Apache-2.0
"""A dynamics_node whose one process serves many tests: each of them configures it anew."""

import time

import yaml
from node_rig import NodeRig
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter as NodeParameter

from robodyn_ros.control import settings

PARAMETERS = {parameter.name for parameter in settings.PARAMETERS}


class SharedRig(NodeRig):
    """
    A rig whose ``start`` gives the running node other parameters and a new control cycle.

    Everything from before is forgotten: parameters, messages, the log, and publishers and
    subscribers that a test made or destroyed. ``start`` configures and activates, as autostart
    does, unless that is 'false'. A process that was ended is replaced.

    Parameters
    ----------
    log_path : Path
    at_start
        Parameters on the command line of the process.
    """

    def __init__(self, log_path, **at_start):
        self._logged = 0  # characters, of the tests before
        self._at_start = at_start
        self._defaults = {}  # of the parameters that were ever set
        super().__init__(log_path)
        self._kept = self._ends()

    @property
    def log(self):
        """What the node has logged since its last start."""
        return super().log[self._logged :]

    def start(self, **parameters):
        """Start the node, or configure it anew, with the parameter file and these changes."""
        autostart = parameters.pop('autostart', 'true')
        self._logged = 0
        if self.process is None or self.process.poll() is not None:
            super().start(**self._at_start)
            self._defaults = {}
        elif self.lifecycle() == 'active':
            assert self.transition('deactivate')
        if self.lifecycle() == 'inactive':
            assert self.transition('cleanup')
        self._forget()
        self._set({name.replace('__', '.'): value for name, value in parameters.items()})
        if autostart == 'true' and self.transition('configure'):
            self.transition('activate')
        return self

    def _forget(self):
        for end in self._ends() - self._kept:
            self.node.destroy_publisher(end) or self.node.destroy_subscription(end)
        if self._kept - self._ends():
            details = ('commands', 'torques', 'dynamics_state')
            self.disconnect('/joint_states', *(f'/dynamics_node/{name}' for name in details))
            self.connect()
            self._kept = self._ends()
        self._logged, self._begun = len(self.log), time.time_ns()
        for kept in (self.commands, self.torques, self.states, self.reports):
            kept.clear()

    def _ends(self):
        return {*self.node.publishers, *self.node.subscriptions}

    def set_parameter(self, name, value, doing=None):
        self._remember([name], doing)
        return super().set_parameter(name, value, doing)

    def _set(self, given):
        """Set parameters, and all that were set before to what they were at first."""
        self._remember(given)
        values = {
            name: NodeParameter(name, value=yaml.safe_load(f'{value}')).get_parameter_value()
            for name, value in given.items()
        }
        values = {**self._defaults, **values}
        request = SetParametersAtomically.Request(
            parameters=[Parameter(name=name, value=value) for name, value in values.items()]
        )
        if values:
            answer = self.call(SetParametersAtomically, 'set_parameters_atomically', request)
            assert answer.result.successful, answer.result.reason

    def _remember(self, names, doing=None):
        """Ask for the values that parameters have before they are set for the first time."""
        for name in set(names) - set(self._defaults):
            request = GetParameters.Request(names=[name])
            values = self.call(GetParameters, 'get_parameters', request, doing).values
            if name in PARAMETERS:  # no value: an empty list of numbers
                empty = ParameterValue(type=ParameterType.PARAMETER_DOUBLE_ARRAY)
                self._defaults[name] = values[0] if values else empty
