# SPDX-License-Identifier: Apache-2.0
"""The controller's command pipeline on a Panda in MuJoCo, 1 kHz, no friction."""

import numpy as np
import pytest
from compiled_arms import PUBLIC_ARMS, public_arm
from controller_core import Cycles
from robots import public_urdf

pytest.importorskip('mujoco')

from robodyn_ros import gravity_torque
from robodyn_ros.compiled import compile_model
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.simulation.arm import ArmSimulation

POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
TURN = np.array([0.5, -0.3, 0.4, 0.5, -0.4, 0.3, 0.5])
DURATION = 2.0
PEAK = 0.8  # J, of the motion
NOTHING = np.full(7, np.nan)


class Arm(Cycles):
    """The pipeline as a controller runs it: one cycle a millisecond, what was sent last acts."""

    def start(self):
        file, base, tip = PUBLIC_ARMS['panda']
        self.simulation = ArmSimulation.from_urdf(
            str(public_urdf(file)),
            base_link=base,
            tip_link=tip,
            time_step=0.001,
            initial_position=POSITION,
        )
        self.compiled = compile_model(self.model, kernels=('mass_matrix',))
        self.energies, self.errors, self.sent = [], [], None
        self.sign = np.ones(7)  # of the velocities that are measured
        return self

    def run(self, duration, is_measured=True, is_updated=True, period=0.001):
        """Let time pass [s], with states or without, with a manager that updates or pauses."""
        for k in range(round(duration / 0.001)):
            q, qd = self.simulation.position, self.simulation.velocity
            if is_updated and k % round(period / 0.001) == 0:
                measured = (q, self.sign * qd) if is_measured else (NOTHING, NOTHING)
                torque = self.cycle(*measured, period=period)
                self.sent = self.sent if torque is None else torque
            elif not is_updated:
                self.now += 0.001
            if self.given is not None:
                self.errors.append(self.given.sample(self.now).position - q)
            self.simulation.step(self.sent)
            self.energies.append(self.kinetic_energy(q, qd))

    def kinetic_energy(self, q, qd):
        """Return it [J]; compiled, a mass matrix takes a fiftieth of the time of NumPy's."""
        return 0.5 * qd @ self.compiled.mass_matrix(q) @ qd

    def move(self):
        """Follow a quintic through one radian or so."""
        ends = np.array([POSITION, POSITION + TURN])
        zero = np.zeros((2, 7))
        points = ReferenceState(ends, zero, zero, zero)
        self.given = Reference.through([self.now, self.now + DURATION], points, 0.0)


@pytest.fixture
def arm():
    return Arm(public_arm('panda')).start()


def test_it_tracks_within_half_a_milliradian(arm):
    arm.run(0.1)
    arm.move()
    arm.run(DURATION + 0.3)
    assert np.sqrt(np.mean(np.square(arm.errors))) < 0.5e-3
    assert max(arm.energies) == pytest.approx(PEAK, rel=0.1)
    assert arm.following == 'moving'


def test_switched_forty_times_at_rest_it_does_not_move(arm):
    arm.run(0.1)
    for _ in range(40):
        arm.pipeline.disable()
        arm.run(0.002, is_updated=False)
        arm.pipeline.enable(arm.now)
        arm.run(0.05)
    assert np.abs(arm.simulation.position - POSITION).max() < 1e-4


@pytest.mark.parametrize('at', [0.5, 1.0, 1.4])
def test_a_reference_that_ends_in_motion_is_braked(arm, at):
    arm.run(0.1)
    arm.move()
    arm.run(at)
    moving = max(arm.energies)
    arm.given = None
    arm.run(3.0)
    assert arm.following == 'holding'
    assert max(arm.energies) < 1.3 * moving
    assert arm.energies[-1] < 1e-6


@pytest.mark.parametrize('at', [0.5, 1.0, 1.4])
@pytest.mark.parametrize('gap', [0.12, 0.6])
def test_states_that_are_missing_in_motion_leave_hardly_any_energy(arm, at, gap):
    arm.run(0.1)
    arm.move()
    arm.run(at)
    arm.run(gap, is_measured=False)
    left = arm.energies[-1]
    arm.given = None
    arm.run(2.0)
    assert max(arm.energies) < 1.3 * PEAK
    assert arm.energies[-1] < 1e-5
    if gap > 0.5:
        assert left < 0.02  # J, where the motion has 0.8


@pytest.mark.parametrize('pause', [0.05, 0.12])
def test_a_pause_of_the_manager_in_motion_is_recovered_from(arm, pause):
    arm.run(0.1)
    arm.move()
    arm.run(1.0)
    moving = max(arm.energies)
    arm.run(pause, is_updated=False)
    arm.run(3.0)
    assert max(arm.energies) < 3.0 * moving
    assert arm.energies[-1] < 1e-5


def test_an_arm_that_is_blocked_is_not_forced(arm):
    arm.run(0.1)
    arm.move()
    for _ in range(2000):
        torque = arm.cycle(POSITION, np.zeros(7))
    assert arm.fault == 'following_error'
    assert arm.following == 'holding'
    held = np.abs(torque - gravity_torque(arm.model, POSITION))
    assert held.max() < 0.5


@pytest.mark.parametrize('joint', [3, 6])
def test_damping_does_not_drive_an_arm_with_a_velocity_of_the_wrong_sign(joint):
    arm = Arm(public_arm('panda'), mode='gravity_compensation').start()
    arm.simulation.brakes_engaged = False
    arm.simulation._data.qvel[:] = 0.05
    arm.sign[joint] = -1.0
    arm.run(2.0)
    assert max(arm.energies) < 2.0 * arm.energies[0]
    assert arm.fault == 'wrong_velocity'


@pytest.mark.parametrize('rate', [10.0, 20.0, 30.0, 50.0])
def test_slow_updates_leave_an_arm_under_gravity_compensation_at_rest(rate):
    arm = Arm(
        public_arm('panda'),
        mode='gravity_compensation',
        settings={'state_timeout': 0.25},
    ).start()
    arm.simulation.brakes_engaged = False
    arm.simulation._data.qvel[:] = 0.2
    arm.run(8.0, period=1.0 / rate)
    assert max(arm.energies) < 1.1 * arm.energies[0]
    assert arm.energies[-1] < 0.1 * arm.energies[0]
