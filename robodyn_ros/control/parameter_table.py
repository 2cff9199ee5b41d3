# SPDX-License-Identifier: Apache-2.0
"""The dynamics node's parameters: one table that describes, bounds and documents them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from robodyn_ros.control.law import MODES
from robodyn_ros.control.rigid_body import ALGORITHMS
from robodyn_ros.control.safety_settings import ACTIONS, CONTACT_ACTIONS
from robodyn_ros.control.settings import OBSERVED_EFFORTS, ControlSettings
from robodyn_ros.errors import InvalidNumber, UnknownOption, WrongShape

_HUGE = 1e9


@dataclass(frozen=True)
class NodeParameter:
    """
    One row of the table.

    Parameters
    ----------
    name, description : str
        What ``ros2 param describe`` shows.
    bounds : (float, float) or None
        Smallest and largest number, also of each number of an array.
    choices : tuple of str
        The values that exist; empty: any.
    is_nonzero : bool
        No number may be 0.
    lengths : tuple of int
        Lengths that an array may have; empty: one value, or one for each joint.
    is_live : bool
        Takes effect at once; otherwise the node must be cleaned up to change it.
    is_read_only : bool
        Read once, when the node starts.
    meanwhile : str
        How to get the effect of one that is not live while the node is configured.
    """

    name: str
    description: str
    bounds: tuple[float, float] | None = None
    is_nonzero: bool = False
    choices: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    is_live: bool = True
    is_read_only: bool = False
    meanwhile: str = ''

    @property
    def field(self) -> str:
        """Its name in ``ControlSettings``."""
        return self.name.replace('.', '_')

    @property
    def default(self) -> Any:
        """That of ``ControlSettings``; its type is the parameter's type, arrays are tuples."""
        return getattr(ControlSettings, self.field)

    @property
    def kind(self) -> str:
        """The parameter's type as ROS writes it."""
        if not isinstance(self.default, tuple):
            return {bool: 'bool', str: 'string', float: 'double'}[type(self.default)]
        return 'string[]' if self.bounds is None else 'double[]'

    @property
    def allowed(self) -> str:
        """What values it may have, in words; empty: any of its type."""
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        if self.bounds is None:
            return ''
        low, high = self.bounds
        each = 'each ' if isinstance(self.default, tuple) else ''
        if high < _HUGE:
            return f'{each}{low:g} to {high:g}'
        if low <= -_HUGE:
            return f'{each}finite, not 0' if self.is_nonzero else f'{each}finite'
        return f'{each}at least {low:g}' if low == 0.0 else f'{each}positive'

    @property
    def change(self) -> str:
        """When it may be changed, in words."""
        if self.is_read_only:
            return 'never: read when the node starts'
        return 'at any time' if self.is_live else 'before configure'


PARAMETERS = (
    NodeParameter(
        'urdf_file',
        'Path of the URDF; empty: the topic robot_description.',
        is_live=False,
    ),
    NodeParameter(
        'identified_model',
        'Path of the YAML that robodyn identify wrote for this robot: its bodies and friction '
        "instead of the URDF's; empty: the URDF's.",
        is_live=False,
    ),
    NodeParameter(
        'base_link',
        'First link of the chain; empty: the root.',
        is_live=False,
    ),
    NodeParameter(
        'tip_link',
        'Last link of the chain; empty: found in the URDF where it is unambiguous.',
        is_live=False,
    ),
    NodeParameter(
        'joints',
        "Order of the commands and of every array: a permutation of the chain's joints; empty: "
        'base to tip.',
        is_live=False,
    ),
    NodeParameter(
        'algorithm',
        'How the inverse dynamics is computed; compiled falls back to newton_euler without a C '
        'compiler.',
        choices=ALGORITHMS,
        is_live=False,
    ),
    NodeParameter(
        'gravity',
        "Gravity in the base link's axes [m/s²].",
        bounds=(-_HUGE, _HUGE),
        lengths=(3,),
        is_live=False,
        meanwhile='the service set_gravity',
    ),
    NodeParameter(
        'mode',
        'Control law; a change fades over ramp_time.',
        choices=MODES,
    ),
    NodeParameter(
        'kp',
        'Position gains of computed_torque [1/s²]: they act on accelerations.',
        bounds=(0.0, _HUGE),
    ),
    NodeParameter(
        'kd',
        'Velocity gains of computed_torque [1/s].',
        bounds=(0.0, _HUGE),
    ),
    NodeParameter(
        'terms.inertial',
        'Command M(q) qdd_d; false if the driver does.',
    ),
    NodeParameter(
        'terms.coriolis',
        'Command C(q, qd) qd; false if the driver does.',
    ),
    NodeParameter(
        'terms.gravity',
        'Command g(q); false if the driver compensates gravity.',
    ),
    NodeParameter(
        'terms.friction',
        "Command the URDF's friction at the desired velocity; false if the driver does.",
    ),
    NodeParameter(
        'friction_velocity',
        'Velocity at which three quarters of the Coulomb friction are '
        'compensated [rad/s] or [m/s]: width of the smooth sign.',
        bounds=(1e-6, _HUGE),
    ),
    NodeParameter(
        'ramp_time',
        'Time over which one law fades into another, and a moving reference comes to rest [s].',
        bounds=(0.0, 60.0),
    ),
    NodeParameter(
        'state_timeout',
        "Age at which a joint's state is stale [s].",
        bounds=(0.001, 60.0),
    ),
    NodeParameter(
        'watchdog_period',
        'Period at which staleness is checked [s].',
        bounds=(0.001, 1.0),
        is_live=False,
    ),
    NodeParameter(
        'on_stale_state',
        'What to command when joint states stop.',
        choices=ACTIONS,
    ),
    NodeParameter(
        'stale_hold_time',
        'How long gravity is commanded then, before nothing is [s].',
        bounds=(0.0, 3600.0),
    ),
    NodeParameter(
        'on_stop',
        'The stop command when commanding ends.',
        choices=ACTIONS,
    ),
    NodeParameter(
        'effort_limits',
        'Largest torques [N m] or forces [N]; empty: those of the URDF.',
        bounds=(1e-9, _HUGE),
        is_live=False,
    ),
    NodeParameter(
        'effort_limit_scale',
        'Usable fraction of the effort limits.',
        bounds=(0.0, 1.0),
    ),
    NodeParameter(
        'torque_rate_limit',
        'Largest change of torque [N m/s] or [N/s]; 0: off.',
        bounds=(0.0, _HUGE),
    ),
    NodeParameter(
        'max_reference_step',
        'Largest jump of the reference where a new trajectory begins [rad] or [m].',
        bounds=(1e-6, _HUGE),
    ),
    NodeParameter(
        'max_following_error',
        'Tracking error at which the reference is dropped and the arm braked [rad] or [m]; 0: '
        'off.',
        bounds=(0.0, _HUGE),
    ),
    NodeParameter(
        'braking_acceleration',
        'Largest deceleration when a reference ends early or the node is told to stop [rad/s²] or '
        '[m/s²]; empty: what the effort limits allow.',
        bounds=(1e-6, _HUGE),
    ),
    NodeParameter(
        'damping',
        'Damping of a moving arm when gravity compensation takes over, until it rests [1/s]; 0: '
        'off.',
        bounds=(0.0, 1000.0),
    ),
    NodeParameter(
        'position_guard',
        'Width of the soft joint limit: displacement beyond a position limit over which outward '
        'torque fades and outward motion is braked [rad] or [m]; 0: off.',
        bounds=(0.0, _HUGE),
    ),
    NodeParameter(
        'effort_scale',
        'Torque for a unit of measured effort, N m/A for example; negative: reversed; empty: that '
        'of identified_model, else 1.',
        bounds=(-_HUGE, _HUGE),
        is_nonzero=True,
        is_live=False,
    ),
    NodeParameter(
        'command_scale',
        "Commands' unit per torque, A/(N m) for example, behind every limit; negative: a reversed "
        'drive; empty: that of identified_model, else 1.',
        bounds=(-_HUGE, _HUGE),
        is_nonzero=True,
        is_live=False,
    ),
    NodeParameter(
        'controller_manager',
        "Node name of ros2_control's controller manager, to be given with controller; empty: the "
        "controller's state is not checked.",
        is_live=False,
    ),
    NodeParameter(
        'controller',
        'Controller that takes the commands: no trajectory is followed while it is inactive, and '
        'it is deactivated when the node stops commanding.',
        is_live=False,
    ),
    NodeParameter(
        'on_contact',
        'Reaction to a contact: report, stop (brake and hold) or float (gravity compensation). '
        'No safety function.',
        choices=CONTACT_ACTIONS,
    ),
    NodeParameter(
        'contact_threshold_moving',
        'External torque of a moving joint that is a contact [N m] or [N], as robodyn '
        'contact-thresholds finds it; empty: from identified_model, else nothing is a contact.',
        bounds=(1e-9, _HUGE),
        is_live=False,
    ),
    NodeParameter(
        'contact_threshold_standing',
        'The same for a stationary joint, or one that has just reversed: stiction hides more.',
        bounds=(1e-9, _HUGE),
        is_live=False,
    ),
    NodeParameter(
        'contact_dwell',
        'How long a threshold is exceeded before it is a contact [s].',
        bounds=(0.0, 10.0),
        is_live=False,
    ),
    NodeParameter(
        'observer_gain',
        'Gain of the momentum observer [1/s]: 95 % of a torque step after 3 / gain.',
        bounds=(1e-3, 1e4),
        is_live=False,
    ),
    NodeParameter(
        'observed_effort',
        "Torque that the momentum observer assumes: the commanded one, or the joint states' "
        'times effort_scale.',
        choices=OBSERVED_EFFORTS,
        is_live=False,
    ),
    NodeParameter(
        'wrench_point',
        "Point of application of tip_wrench, in the tip link's frame [m].",
        bounds=(-_HUGE, _HUGE),
        lengths=(3,),
        is_live=False,
    ),
    NodeParameter(
        'external_effort_topic',
        "Topic of joint states whose effort is added to the torque, such as another arm's "
        'external_torques; empty: none.',
        is_live=False,
    ),
    NodeParameter(
        'external_effort_scale',
        'Factor of the added effort.',
        bounds=(-_HUGE, _HUGE),
        is_live=False,
    ),
    NodeParameter(
        'external_effort_limit',
        'Largest added effort [N m] or [N]; empty: a tenth of the effort limits.',
        bounds=(0.0, _HUGE),
        is_live=False,
    ),
    NodeParameter(
        'autostart',
        'Configure and activate without a lifecycle manager.',
        is_live=False,
        is_read_only=True,
    ),
)

BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}


def checked(values: Mapping[str, Any]) -> ControlSettings:
    """
    Return the settings that the parameters' values are, each checked against the table.

    Raises
    ------
    UnknownOption, InvalidNumber, WrongShape
        The parameter, its value and what is allowed.
    """
    result = {}
    for parameter in PARAMETERS:
        value = values[parameter.name]
        element = f'parameter {parameter.name}'
        if isinstance(parameter.default, tuple):
            value = tuple(entry for entry in value if entry != '')
            if parameter.lengths and len(value) not in parameter.lengths:
                raise WrongShape(element, list(value), f'{parameter.lengths[0]} numbers')
        if parameter.choices and value not in parameter.choices:
            raise UnknownOption(element, value, ', '.join(parameter.choices))
        if parameter.bounds:
            low, high = parameter.bounds
            for number in value if isinstance(value, tuple) else (value,):
                is_forbidden = parameter.is_nonzero and number == 0.0
                if not isfinite(number) or not low <= number <= high or is_forbidden:
                    raise InvalidNumber(element, number, parameter.allowed)
        result[parameter.field] = value
    return ControlSettings(**result)


def check_live(names: Iterable[str]) -> None:
    """
    Check that a configured node may change these parameters.

    Raises
    ------
    UnknownOption
        One takes effect only at configure.
    """
    for name in names:
        if name in BY_NAME and not BY_NAME[name].is_live:
            meanwhile = BY_NAME[name].meanwhile
            raise UnknownOption(
                f'parameter {name}',
                'changed while configured',
                'changes before configure' + (meanwhile and f'; meanwhile {meanwhile}'),
            )
