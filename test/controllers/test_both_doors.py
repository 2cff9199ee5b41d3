# SPDX-License-Identifier: Apache-2.0
"""
The same requests to the node's stack and to the controller's logic: accepted or not, and why.

Both command an arm of three joints in MuJoCo. What is accepted is compared by its torques, too.
What one door alone does stands in decision 06, and its row says what the other one answers.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip('mujoco')

from controller_core import (
    STRICT,
    cpp_compiler,
    exported,
    headers,
    pointer,
    setting_numbers,
    shared_model,
)
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.compiled.c.shared import SharedModel, SharedPayload
from robodyn_ros.control import control_stack
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.settings import arm_settings, checked
from robodyn_ros.control.tip_target import RejectedTarget, TipPose
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.kinematics import reach
from robodyn_ros.simulation.arm import ArmSimulation

HERE = Path(__file__).parent
PERIOD = 0.002  # s
TIMEOUT = 0.1  # state_timeout [s]
COMPARED = 0.5  # s, of the motion after a request
TOLERANCE = 0.02  # N m, between torques of up to 30
NAMES = ('yaw', 'shoulder', 'elbow')
TOOL = 'tool'
START = np.array([0.2, -0.6, 1.1])
TURN, DURATION = np.array([0.3, 0.2, -0.2]), 1.0
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
PARAMETERS: dict[str, Any] = {
    'tip_link': TOOL,
    'mode': 'cartesian_impedance',
    'state_timeout': TIMEOUT,
    'contact_threshold_moving': (3.0,),
    'contact_threshold_stationary': (3.0,),
    'on_contact': 'stop',
}
_LIMIT = '<limit lower="-2.8" upper="2.8" effort="60" velocity="3"/>'


def description() -> str:
    """Return a URDF: a vertical axis, and two parallel ones across it."""
    moments = (0.02, 0.02, 0.02)
    return robot(
        link('base'),
        *(link(f'link{k}', 1.0, (0.1, 0.0, 0.05), moments) for k in range(3)),
        joint('yaw', 'base', 'link0', 'revolute', xyz=(0, 0, 0.2), more=_LIMIT),
        *(
            joint(
                name, f'link{k}', f'link{k + 1}', 'revolute', xyz=at, axis=(0, 1, 0), more=_LIMIT
            )
            for k, (name, at) in enumerate(zip(NAMES[1:], [(0, 0, 0.1), (0.3, 0, 0)]))
        ),
        link('head', 1.0, (0.0, 0.0, 0.1), moments),
        joint('neck', 'base', 'head', 'revolute', xyz=(0.2, 0, 0.5), more=_LIMIT),
        link('tool'),
        joint('flange', 'link2', 'tool', 'fixed', xyz=(0.3, 0, 0)),
    )


def quintic(seconds: float) -> np.ndarray:
    """Return position, velocity and acceleration of the motion a time after its begin, (3, n)."""
    s = min(seconds / DURATION, 1.0)
    place = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    speed = 30.0 * s**2 * (1.0 - s) ** 2 / DURATION
    rate = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / DURATION**2
    return np.array([START + place * TURN, speed * TURN, rate * TURN])


_NUMBERS, _TEXT = ctypes.POINTER(ctypes.c_double), ctypes.c_char_p
ARGUMENTS: dict[str, list[Any]] = {
    'close': [],
    'activate': [],
    'deactivate': [_NUMBERS],
    'update': [ctypes.c_double, *4 * [_NUMBERS]],
    'change': [_NUMBERS],
    'enable': [ctypes.c_int],
    'cancel': [],
    'payload': [_TEXT, ctypes.POINTER(SharedPayload)],
    'gravity': [_TEXT, _NUMBERS],
    'setpoint': [ctypes.c_int, ctypes.POINTER(_TEXT), _NUMBERS],
    'pose': [_TEXT, _NUMBERS],
    'wrench': [_TEXT, _NUMBERS],
    'weigh': [],
    'refused': [],
    'fault': [],
}


# --- the two doors -----------------------------------------------------------------------------


class Door:
    """An arm, the time, and what acts on it; doors differ in how requests and states get in."""

    def __init__(self, urdf: str, **parameters: Any) -> None:
        self.parameters = {'urdf_file': urdf, **PARAMETERS, **parameters}
        self.arm = rd.RobotModel.from_urdf(urdf, tip_link=TOOL)
        self.simulation = ArmSimulation.from_urdf(
            urdf, tip_link=TOOL, time_step=PERIOD, initial_position=START
        )
        self.jump = np.zeros(3)  # between the arm and what is measured [rad]
        self.now, self.torque = 10.0, np.full(3, np.nan)
        self.is_active = False
        self.is_measured = True  # whether states come
        self.has_velocities = True  # whether they have velocities
        self.began: float | None = None  # the motion; None: it did not
        self.torques: list[np.ndarray] = []  # that acted in each period
        self.begin()

    def run(self, duration: float) -> None:
        """Run for a time [s]."""
        for _ in range(round(duration / PERIOD)):
            self.now = round(self.now + PERIOD, 9)
            position = self.simulation.position + self.jump
            velocity = self.simulation.velocity if self.has_velocities else np.full(3, np.nan)
            found = self.cycle(position, velocity) if self.is_active else None
            self.torque = self.torque if found is None else np.array(found)
            self.torques.append(self.torque)
            if np.isfinite(self.torque).all():
                self.simulation.step(self.torque)


class Node(Door):
    """The node's stack, as ``ros/dynamics/`` calls it."""

    def begin(self) -> None:
        self.settings = checked(self.parameters)
        self.stack = control_stack.build_control_stack(self.settings, None)
        self.pipeline = self.stack.pipeline

    def cycle(self, position, velocity):
        stack, pipeline = self.stack, self.pipeline
        if self.began is not None and self.now >= self.began > self.now - PERIOD:
            states = [quintic(0.01 * k) for k in range(1, 101)]
            rows = [[list(state[k]) for state in states] for k in range(3)]
            times = [0.01 * k for k in range(1, 101)]
            pipeline.follow(
                Trajectory.from_points(
                    NAMES, times, *rows, [()] * len(times), start=self.began - PERIOD
                )
            )
        if pipeline._core.is_stopping and pipeline.has_stopped:
            command = pipeline.stop_command(self.now)
            if command is None:
                pipeline.disable()
            return None if command is None else command.torque
        command = None
        if self.is_measured:
            stack.joint_states.receive(
                NAMES, position.tolist(), velocity.tolist(), received=self.now, stamp=self.now
            )
            acting = pipeline.last_torque
            state = stack.joint_states.take()
            command = pipeline.step(state, self.now)
            if command is not None:
                found = stack.monitor.update(command.state, acting, pipeline.settings)
                if found is not None and not found.is_over:
                    pipeline.react_to_contact(self.settings.on_contact, str(found))
        else:
            command = pipeline.watchdog(self.now)
        return None if command is None else command.torque

    def answer(self, request: Callable[[], Any]) -> str:
        try:
            request()
        except rd.RobodynError as error:
            return str(error)
        return ''

    def activate(self) -> str:
        self.is_active = True
        self.pipeline.enable(self.now)
        return ''

    def deactivate(self) -> str:
        self.pipeline.disable()
        self.is_active = False
        return ''

    def enable(self, is_enabled: bool) -> str:
        if not self.is_active:
            return 'the node is inactive, not active'
        self.pipeline.enable(self.now) if is_enabled else self.pipeline.begin_stop()
        return ''

    def change(self, **parameters: Any) -> str:
        self.parameters.update(parameters)
        self.settings = checked(self.parameters)
        control_stack.apply_settings(self.stack, arm_settings(self.arm, self.settings))
        return ''

    def _is_relative(self, frame: str) -> bool:
        if frame not in ('', 'base', 'tool'):  # as ros/dynamics/tip_topics.py
            raise RejectedTarget('frame_id', frame, "one of '', 'base', 'tool'")
        return frame == 'tool'

    def pose(self, position, xyzw=UPRIGHT, frame='') -> str:
        return self.answer(
            lambda: self.pipeline.aim_tip(
                TipPose.checked(position, xyzw), is_relative=self._is_relative(frame)
            )
        )

    def wrench(self, wrench, frame='') -> str:
        return self.answer(
            lambda: self.pipeline.add_wrench(
                wrench, self.now, is_relative=self._is_relative(frame)
            )
        )

    def weigh(self) -> str:
        return self.answer(lambda: self.pipeline.weigh(self.stack.model.gravity))

    def payload(self, mass, center=(0.0, 0.0, 0.0), inertia=(0.0,) * 6, on='') -> str:
        xx, xy, xz, yy, yz, zz = inertia
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return self.answer(
            lambda: control_stack.apply_change(
                self.stack, rd.Payload(mass, center, tensor, on or None)
            )
        )

    def gravity(self, vector, frame='') -> str:
        change = GravityChange(np.array(vector, dtype=float), frame)
        return self.answer(lambda: control_stack.apply_change(self.stack, change))

    def setpoint(self, positions, names=NAMES, seconds=0.0) -> str:
        rows = [[()], [()], [()]]
        return self.answer(
            lambda: self.pipeline.follow(
                Trajectory.from_points(names, [seconds], [list(positions)], *rows)
            )
        )

    def cancel(self) -> str:
        return self.answer(self.pipeline.cancel)

    @property
    def fault(self) -> str:
        return self.pipeline.last_fault


class Controller(Door):
    """The controller's logic, as the plugin calls it."""

    library: Any
    model: SharedModel

    def begin(self) -> None:
        self.stack = None
        self.door = self.library.door_open(ctypes.byref(self.model), self._numbers())

    def _numbers(self):
        settings = checked(self.parameters)
        limits = control_stack.reference_limits(self.arm)
        given = replace(arm_settings(self.arm, settings), on_contact='stop')
        return pointer(setting_numbers(given, limits))

    def __del__(self) -> None:
        self.library.door_close(self.door)

    def cycle(self, position, velocity):
        command = np.empty(3)
        if not self.is_measured:
            position = velocity = np.full(3, np.nan)
        reference = None
        if self.began is not None and self.now >= self.began:
            reference = pointer(np.ascontiguousarray(quintic(self.now - self.began + PERIOD)))
        has_command = self.library.door_update(
            self.door, PERIOD, pointer(position), pointer(velocity), reference, pointer(command)
        )
        return command if has_command else None

    def say(self, name: str, *arguments: Any) -> str:
        return getattr(self.library, f'door_{name}')(self.door, *arguments).decode()

    def activate(self) -> str:
        self.library.door_activate(self.door)
        self.is_active = True
        return ''

    def deactivate(self) -> str:
        self.library.door_deactivate(self.door, pointer(np.empty(3)))
        self.is_active = False
        return ''

    def enable(self, is_enabled: bool) -> str:
        return self.say('enable', int(is_enabled))

    def change(self, **parameters: Any) -> str:
        self.parameters.update(parameters)
        return self.say('change', self._numbers())

    def _in_loop(self, answer: str) -> str:
        """Return what the next cycle refuses, if nothing was refused before."""
        if not answer and self.is_active:
            self.run(PERIOD)
        return answer or self.say('refused')

    def pose(self, position, xyzw=UPRIGHT, frame='') -> str:
        numbers = pointer(np.array([*position, *xyzw], dtype=float))
        return self._in_loop(self.say('pose', frame.encode(), numbers))

    def wrench(self, wrench, frame='') -> str:
        numbers = pointer(np.array(wrench, dtype=float))
        return self._in_loop(self.say('wrench', frame.encode(), numbers))

    def weigh(self) -> str:
        return self._beside('weigh')

    def _beside(self, name: str, *arguments: Any) -> str:
        """Return the answer to a request that waits for a cycle; usually there is one."""
        found: list[str] = []
        other = threading.Thread(target=lambda: found.append(self.say(name, *arguments)))
        other.start()
        time.sleep(0.003)
        other.join(0.003)
        while other.is_alive():
            self.run(PERIOD)
            other.join(0.1)
        return found[0]

    def payload(self, mass, center=(0.0, 0.0, 0.0), inertia=(0.0,) * 6, on='') -> str:
        payload = SharedPayload(mass, (*center,), (*inertia,))
        return self._beside('payload', on.encode(), ctypes.byref(payload))

    def gravity(self, vector, frame='') -> str:
        return self._beside('gravity', frame.encode(), pointer(np.array(vector, dtype=float)))

    def setpoint(self, positions, names=NAMES, seconds=0.0) -> str:
        words = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
        numbers = pointer(np.array(positions, dtype=float))
        return self._in_loop(self.say('setpoint', len(names), words, numbers))

    def cancel(self) -> str:
        return self.say('cancel')

    @property
    def fault(self) -> str:
        return self.say('fault')


@pytest.fixture(scope='module')
def urdf(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp('arm') / 'arm.urdf'
    path.write_text(description())
    return str(path)


@pytest.fixture(scope='module')
def doors(urdf, tmp_path_factory) -> tuple[type[Door], type[Door]]:
    folder = tmp_path_factory.mktemp('controller')
    made = folder / 'door.so'
    command = [cpp_compiler(), *STRICT, '-O1', *headers(folder), '-shared', '-fPIC']
    source = HERE / 'controller_door.cpp'
    subprocess.run([*command, source, '-o', made], check=True, timeout=600)
    Controller.library = ctypes.CDLL(str(made))
    Controller.library.door_open.restype = ctypes.c_void_p
    for name in re.findall(r'const char \* (door_\w+)', source.read_text()):
        getattr(Controller.library, name).restype = ctypes.c_char_p
    for name, types in ARGUMENTS.items():
        function = getattr(Controller.library, f'door_{name}')
        function.argtypes = [ctypes.c_void_p, *types]
    Controller.model = shared_model(exported(rd.RobotModel.from_urdf(urdf, tip_link=TOOL), folder))
    return Node, Controller


# --- what was answered -------------------------------------------------------------------------

# The essence of a refusal, by the words of either door; the first that fits.
ESSENCES = (
    ('reach', 'the reach of the arm'),
    ('fault', 'which acknowledges it'),
    ('inactive', 'not active|nothing is commanded'),
    ('nothing followed', 'nothing is followed|there is no fresh'),
    ('no spring', 'no spring at the tip'),
    ('mode', 'the mode is'),
    ('motion', 'moves'),
    ('quaternion', 'norm of the quaternion'),
    ('frame', 'frame_id'),
    ('body', 'inertia that a body|principal moments'),
    ('not finite', 'finite'),
    ('force', 'largest_force'),
    ('moment', 'largest_moment'),
    ('mass', 'payload mass'),
    ('gyration', 'radius of gyration'),
    ('centre', 'centre of mass'),
    ('strength', 'gravity strength'),
    ('effort limit', 'effort limit'),
    ('link', 'link'),
    ('step', 'max_reference_step'),
    ('limits', 'position limit|outside|allowed:.*to '),
    ('joints', 'joint'),
)


def essence(answer: str) -> tuple[str, float | None]:
    """Return what an answer refuses, and the limit that it names; accepted where it is empty."""
    if not answer:
        return 'accepted', None
    kind = next((key for key, words in ESSENCES if re.search(words, answer)), answer)
    limit = re.search(r'(?:at most|= |within )\D*([\d.]+(?:e[+-]?\d+)?)', answer)
    return kind, float(f'{float(limit[1]):.3g}') if limit else None


# --- in what state -----------------------------------------------------------------------------


def rest(door: Door) -> None:
    door.activate()
    door.run(0.4)


def without_velocities(door: Door) -> None:
    door.has_velocities = False
    rest(door)


def motion(door: Door) -> None:
    rest(door)
    door.began = door.now + PERIOD
    door.run(0.4)


def contact(door: Door) -> None:
    rest(door)
    door.simulation.push([0.0, 25.0, 0.0, 0.0, 0.0, 0.0])
    door.run(0.2)
    assert 'contact' in door.fault


def fault(door: Door) -> None:
    rest(door)
    door.jump[0] = 0.4
    door.run(0.5)
    assert door.fault


def acknowledged(door: Door) -> None:
    fault(door)
    assert door.cancel() == ''
    door.run(0.1)
    assert not door.fault


def stale(door: Door) -> None:
    rest(door)
    door.is_measured = False
    door.run(0.3)


def stopping(door: Door) -> None:
    motion(door)
    assert door.enable(False) == ''
    door.run(0.02)


def disabled(door: Door) -> None:
    rest(door)
    assert door.enable(False) == ''
    door.run(1.5)


def disabled_on_the_way(door: Door) -> None:
    """A position was followed before, and the arm was moved meanwhile."""
    rest(door)
    assert door.setpoint(START) == ''
    door.run(0.7)
    assert door.enable(False) == ''
    door.run(1.5)
    door.jump[1] = 0.05


def held(door: Door) -> None:
    rest(door)
    assert door.setpoint(START) == ''
    door.run(0.7)


def held_in_contact(door: Door) -> None:
    held(door)
    door.simulation.push([0.0, 25.0, 0.0, 0.0, 0.0, 0.0])
    door.run(0.2)
    door.simulation.push(np.zeros(6))
    door.run(1.0)
    assert 'contact' in door.fault


def held_and_stale(door: Door) -> None:
    """The arm was moved meanwhile."""
    held(door)
    door.is_measured = False
    door.run(0.3)
    door.jump[1] = 0.04


def guided(door: Door) -> None:
    """A position was followed before, and another one refused."""
    held(door)
    door.change(mode='gravity_compensation')
    door.run(0.3)
    assert 'which follows none' in door.setpoint(START)
    door.jump[1] = 0.04
    door.run(0.3)


def refused(door: Door) -> None:
    held(door)
    assert 'max_reference_step' in door.setpoint(START + 0.3)
    door.run(0.2)


def weightless(door: Door) -> None:
    door.change(mode='gravity_compensation')
    rest(door)


def overspeed(door: Door) -> None:
    rest(door)
    door.simulation.push([0.0, 300.0, 0.0, 0.0, 0.0, 0.0])
    door.run(0.06)
    door.simulation.push(np.zeros(6))
    assert door.fault
    door.run(0.5)


def joint_springs(door: Door) -> None:
    door.change(mode='joint_impedance')
    rest(door)


def no_springs(door: Door) -> None:
    door.change(**{'impedance.tip_stiffness': (0.0,) * 6})
    rest(door)


def changed_mode(door: Door) -> None:
    rest(door)
    assert door.change(mode='computed_torque') == ''
    door.run(0.1)


def inactive(door: Door) -> None:
    """The arm was moved meanwhile."""
    rest(door)
    door.deactivate()
    door.jump[1] = 0.3


def inactive_after_disabled(door: Door) -> None:
    disabled(door)
    door.deactivate()
    door.jump[1] = 0.3


def weighed(door: Door) -> None:
    """The hand has taken half a kilogram, which the model carries by now."""
    rest(door)
    assert door.weigh() == ''
    door.simulation.carry([rd.Payload(0.5, (0.0, 0.0, 0.02), link=TOOL)])
    door.run(5.0)


# --- requests ----------------------------------------------------------------------------------

FAR = (100.0, 0.0, 0.0)
NEAR = (0.52, 0.05, 0.05)
PUSH = (0.0, 5.0, 8.0, 0.0, 0.0, 0.0)
CUBE = (0.001, 0.0, 0.0, 0.001, 0.0, 0.001)


class Row(NamedTuple):
    """A request in a state, and what both doors answer, or each of them (decision 06)."""

    name: str
    state: Callable[[Any], None]
    request: Callable[[Any], str]
    expected: str
    by_controller: str = ''  # where it is another answer


def at_reach(door: Any) -> str:
    return door.pose((reach(door.arm), 0.0, 0.0))


def measure(door: Any) -> str:
    door.is_measured = True
    return ''


ROWS = (
    Row('a near pose', rest, lambda d: d.pose(NEAR), 'accepted'),
    Row('a far pose', rest, lambda d: d.pose(FAR), 'reach'),
    Row('a pose at the reach', rest, at_reach, 'accepted'),
    Row('a pose that is no number', rest, lambda d: d.pose((np.nan, 0, 0)), 'not finite'),
    Row('an infinite pose', rest, lambda d: d.pose((0, -np.inf, 0)), 'not finite'),
    Row('no unit quaternion', rest, lambda d: d.pose(NEAR, (0, 0, 0, 1.01)), 'quaternion'),
    Row('a pose in another frame', rest, lambda d: d.pose(NEAR, frame='moon'), 'frame'),
    Row(
        'a pose in axes of the tip', rest, lambda d: d.pose((0, 0, 0.02), frame='tool'), 'accepted'
    ),
    Row('a near pose in motion', motion, lambda d: d.pose(NEAR), 'accepted'),
    Row('a far pose in motion', motion, lambda d: d.pose(FAR), 'reach'),
    Row('a pose in contact', contact, lambda d: d.pose(NEAR), 'fault'),
    Row('a pose after a fault', fault, lambda d: d.pose(NEAR), 'fault'),
    Row('a pose after a cancellation', acknowledged, lambda d: d.pose(NEAR), 'accepted'),
    Row('a pose while stale', stale, lambda d: d.pose(NEAR), 'nothing followed'),
    Row('a pose while stopping', stopping, lambda d: d.pose(NEAR), 'inactive'),
    Row('a pose while disabled', disabled, lambda d: d.pose(NEAR), 'inactive'),
    Row('a pose after overspeed', overspeed, lambda d: d.pose(NEAR), 'fault'),
    Row('a pose in a mode of the joints', joint_springs, lambda d: d.pose(NEAR), 'mode'),
    Row('a pose in a mode that is new', changed_mode, lambda d: d.pose(NEAR), 'mode'),
    Row('a pose without springs', no_springs, lambda d: d.pose(NEAR), 'no spring'),
    Row('a pose after a position that was refused', refused, lambda d: d.pose(NEAR), 'accepted'),
    Row('a pose while inactive', inactive, lambda d: d.pose(NEAR), 'inactive'),
    Row('a wrench while inactive', inactive, lambda d: d.wrench(PUSH), 'inactive'),
    Row('a wrench', rest, lambda d: d.wrench(PUSH), 'accepted'),
    Row('too large a force', rest, lambda d: d.wrench((60, 0, 0, 0, 0, 0)), 'force'),
    Row('too large a moment', rest, lambda d: d.wrench((0, 0, 0, 0, 6, 0)), 'moment'),
    Row('a wrench that is no number', rest, lambda d: d.wrench((np.nan, *PUSH[1:])), 'not finite'),
    Row('a wrench in motion', motion, lambda d: d.wrench(PUSH), 'accepted'),
    Row('a wrench in a mode of the joints', joint_springs, lambda d: d.wrench(PUSH), 'accepted'),
    Row('a wrench in a mode that is new', changed_mode, lambda d: d.wrench(PUSH), 'mode'),
    Row('a wrench in contact', contact, lambda d: d.wrench(PUSH), 'fault'),
    Row('a wrench after a fault', fault, lambda d: d.wrench(PUSH), 'fault'),
    Row('a wrench while stale', stale, lambda d: d.wrench(PUSH), 'nothing followed'),
    Row('a wrench while stopping', stopping, lambda d: d.wrench(PUSH), 'inactive'),
    Row('a weighing', rest, lambda d: d.weigh(), 'accepted'),
    Row('a weighing of what is taken besides', weighed, lambda d: d.weigh(), 'accepted'),
    Row('a weighing on springs of the joints', joint_springs, lambda d: d.weigh(), 'accepted'),
    Row('a payload beside what was weighed', weighed, lambda d: d.payload(0.2), 'accepted'),
    Row('a weighing in motion', motion, lambda d: d.weigh(), 'motion'),
    Row('a weighing in contact', contact, lambda d: d.weigh(), 'fault'),
    Row('a weighing after a fault', fault, lambda d: d.weigh(), 'fault'),
    Row('a weighing while stale', stale, lambda d: d.weigh(), 'nothing followed'),
    Row('a weighing while disabled', disabled, lambda d: d.weigh(), 'inactive'),
    Row('a weighing in a mode that is new', changed_mode, lambda d: d.weigh(), 'mode'),
    Row('a weighing while inactive', inactive, lambda d: d.weigh(), 'inactive'),
    Row('a payload', rest, lambda d: d.payload(1.0, (0, 0, 0.05), CUBE), 'accepted'),
    Row('a payload in motion', motion, lambda d: d.payload(1.0, (0, 0, 0.05), CUBE), 'accepted'),
    Row('a payload in contact', contact, lambda d: d.payload(1.0), 'accepted'),
    Row('a payload while stale', stale, lambda d: d.payload(1.0), 'accepted'),
    Row('a payload while stopping', stopping, lambda d: d.payload(1.0), 'accepted'),
    Row('too heavy a payload', rest, lambda d: d.payload(500.0), 'mass'),
    Row('a payload of less than nothing', rest, lambda d: d.payload(-1.0), 'mass'),
    Row('a payload at an end', rest, lambda d: d.payload(1.0, (1.7e308,) * 3), 'centre'),
    Row('a payload that is no number', rest, lambda d: d.payload(np.nan), 'not finite'),
    Row(
        'a payload of no body',
        rest,
        lambda d: d.payload(1, (0, 0, 0), (1e-3, 0, 0, 1e-3, 0, 1)),
        'body',
    ),
    Row('a payload far off', rest, lambda d: d.payload(1.0, (0, 0, 5.0)), 'centre'),
    Row('a payload beyond the drives', rest, lambda d: d.payload(40.0), 'effort limit'),
    Row(
        'a payload of another link',
        rest,
        lambda d: d.payload(1.0, (0.2, 0.0, 0.0), on='link1'),
        'accepted',
        by_controller='link',
    ),
    Row('a payload of no link', rest, lambda d: d.payload(1.0, on='moon'), 'link'),
    Row('gravity', rest, lambda d: d.gravity((1.0, 0.0, -9.7)), 'accepted'),
    Row('gravity in motion', motion, lambda d: d.gravity((1.0, 0.0, -9.7), 'base'), 'accepted'),
    Row('too strong a gravity', rest, lambda d: d.gravity((0, 0, -60.0)), 'strength'),
    Row('gravity without end', rest, lambda d: d.gravity((1.7e308,) * 3), 'strength'),
    Row('gravity that is no number', rest, lambda d: d.gravity((0, 0, np.nan)), 'not finite'),
    Row('gravity in another frame', rest, lambda d: d.gravity((0, 0, -9.8), 'moon'), 'frame'),
    Row('a mode in motion', motion, lambda d: d.change(mode='computed_torque'), 'accepted'),
    Row(
        'no mode that follows, in motion',
        motion,
        lambda d: d.change(mode='gravity_compensation'),
        'accepted',
    ),
    Row('a mode while stale', stale, lambda d: d.change(mode='computed_torque'), 'accepted'),
    Row(
        'a stiffness in motion',
        motion,
        lambda d: d.change(**{'impedance.tip_stiffness': (200.0,) * 3 + (20.0,) * 3}),
        'accepted',
    ),
    Row('a setting in motion', motion, lambda d: d.change(effort_limit_scale=0.8), 'accepted'),
    Row('a setting after overspeed', overspeed, lambda d: d.change(ramp_time=0.4), 'accepted'),
    Row(
        'a setting in a mode that is new',
        changed_mode,
        lambda d: d.change(damping=1.0),
        'accepted',
    ),
    Row('disable in motion', motion, lambda d: d.enable(False), 'accepted'),
    Row('disable after a fault', fault, lambda d: d.enable(False), 'accepted'),
    Row('enable', disabled, lambda d: d.enable(True), 'accepted'),
    Row('enable after a position', disabled_on_the_way, lambda d: d.enable(True), 'accepted'),
    Row('disable while inactive', inactive, lambda d: d.enable(False), 'inactive'),
    Row('activate after disable', inactive_after_disabled, lambda d: d.activate(), 'accepted'),
    Row('activate again', inactive, lambda d: d.activate(), 'accepted'),
    Row('a position to hold', rest, lambda d: d.setpoint(START), 'accepted'),
    Row('a position after a contact', contact, lambda d: d.setpoint(START), 'accepted'),
    Row('a position after a fault', fault, lambda d: d.setpoint(START + [0.4, 0, 0]), 'accepted'),
    Row('a position while stale', stale, lambda d: d.setpoint(START), 'nothing followed'),
    Row('a position while stopping', stopping, lambda d: d.setpoint(START), 'inactive'),
    Row('a position while disabled', disabled, lambda d: d.setpoint(START), 'inactive'),
    Row('a position while inactive', inactive, lambda d: d.setpoint(START), 'inactive'),
    Row('a position where none is followed', weightless, lambda d: d.setpoint(START), 'mode'),
    Row(
        'a mode that follows again',
        guided,
        lambda d: d.change(mode='computed_torque'),
        'accepted',
    ),
    Row('states again after a position', held_and_stale, measure, 'accepted'),
    Row(
        'a position after one and a contact',
        held_in_contact,
        lambda d: d.setpoint(START),
        'accepted',
    ),
    Row('a distant position while one is held', held, lambda d: d.setpoint(START + 0.3), 'step'),
    Row('a cancellation after a fault', fault, lambda d: d.cancel(), 'accepted'),
    Row('a distant position', rest, lambda d: d.setpoint(START + 0.3), 'step'),
    Row(
        'a distant position in half a second',
        rest,
        lambda d: d.setpoint(START + 0.3, seconds=0.5),
        'accepted',
        by_controller='step',
    ),
    Row('a position beyond its limit', rest, lambda d: d.setpoint((0.2, 3.0, 1.1)), 'limits'),
    Row('a position of some joints', rest, lambda d: d.setpoint([0.25], NAMES[:1]), 'accepted'),
    Row(
        'a position of a joint that moves nothing of the arm, too',
        rest,
        lambda d: d.setpoint([2.0, 0.25], ('neck', 'yaw')),
        'accepted',
    ),
    Row(
        'a position of a joint that moves nothing of the arm alone',
        rest,
        lambda d: d.setpoint([0.2], ('neck',)),
        'joints',
    ),
    Row(
        'a position of another joint',
        rest,
        lambda d: d.setpoint([0.2] * 3, ('a', 'b', 'c')),
        'joints',
    ),
    Row(
        'a joint named twice',
        rest,
        lambda d: d.setpoint([0.2] * 3, ('yaw', 'yaw', 'elbow')),
        'joints',
    ),
    Row(
        'a joint that moves nothing of the arm named twice',
        rest,
        lambda d: d.setpoint([0.2, 0.2, 0.25], ('neck', 'neck', 'yaw')),
        'joints',
    ),
    Row(
        'a pose where none sends velocities',
        without_velocities,
        lambda d: d.pose(NEAR),
        'accepted',
    ),
    Row(
        'a wrench where none sends velocities',
        without_velocities,
        lambda d: d.wrench(PUSH),
        'accepted',
    ),
    Row('a position that is no number', rest, lambda d: d.setpoint([np.nan] * 3), 'not finite'),
)


@cache
def outcome(
    kind: type[Door], urdf: str, row: Row
) -> tuple[tuple[str, float | None], np.ndarray, bool]:
    """
    Return the essence of the answer, and where it accepts the torques from then on.

    Last whether there is a fault at their end.
    """
    door = kind(urdf)
    row.state(door)
    begin = len(door.torques)
    answer = essence(row.request(door))
    end = begin + round(COMPARED / PERIOD)
    if row.expected == 'accepted':
        door.run((end - len(door.torques)) * PERIOD)
    return answer, np.array(door.torques[begin:end]), bool(door.fault)


@pytest.mark.parametrize('row', ROWS, ids=lambda row: row.name)
def test_both_answer_a_request_alike(doors, urdf, row):
    by_node, by_controller = (outcome(kind, urdf, row)[0] for kind in doors)
    assert by_node[0] == row.expected
    if row.by_controller:
        assert by_controller[0] == row.by_controller
    else:
        assert by_node == by_controller


@pytest.mark.parametrize(
    'row',
    [row for row in ROWS if row.expected == 'accepted' and not row.by_controller],
    ids=lambda row: row.name,
)
def test_both_move_the_arm_alike_after_it(doors, urdf, row):
    by_node, by_controller = (outcome(kind, urdf, row)[1:] for kind in doors)
    np.testing.assert_allclose(by_node[0], by_controller[0], atol=TOLERANCE)
    assert by_node[1] == by_controller[1]


def test_a_controller_of_a_tree_carries_a_payload_in_each_hand_and_aims_the_chosen_one(
    doors, tmp_path
):
    tips, file = (
        ('left_hand', 'right_hand'),
        HERE.parents[1] / 'urdf' / 'two_arms_on_a_torso.urdf.xacro',
    )
    tree = rd.RobotModel.from_urdf(file, tip_link=tips)
    settings = checked({**PARAMETERS, 'urdf_file': str(file), 'tip_link': '', 'tip_links': tips})
    given = replace(arm_settings(tree, settings), on_contact='stop')
    numbers = pointer(setting_numbers(given, control_stack.reference_limits(tree)))
    model = SharedModel.from_buffer_copy(shared_model(exported(tree, tmp_path)))
    model.tip = 1
    library = doors[1].library
    door = library.door_open(ctypes.byref(model), numbers)
    for on, mass, answer in (
        (b'left_hand', 0.7, b''),
        (b'torso', 0.7, b"payload link 'torso'; allowed: 'left_hand', 'right_hand'"),
        (b'', 1.5, b''),
    ):
        payload = SharedPayload(mass, (0.0, 0.0, 0.05), 6 * (0.0,))
        assert library.door_payload(door, on, ctypes.byref(payload)) == answer
    for tip, mass in zip(tips, (0.7, 1.5)):
        tree = tree.with_payload(rd.Payload(mass, (0.0, 0.0, 0.05), link=tip))
    library.door_activate(door)
    position, command = np.array([0.2, 0.3, 0.8, 0.6, -0.4, -0.8, -0.6]), np.empty(7)
    for _ in range(5):
        assert library.door_update(
            door, PERIOD, pointer(position), pointer(np.zeros(7)), None, pointer(command)
        )
    np.testing.assert_allclose(command, rd.gravity_torque(tree, position), atol=1e-6)
    pose = pointer(np.array([0.0, 0.0, 0.02, *UPRIGHT]))
    assert library.door_pose(door, b'right_hand', pose) == b''
    assert b"one of '', 'right_hand', 'base_link'" in library.door_pose(door, b'left_hand', pose)
    library.door_close(door)
