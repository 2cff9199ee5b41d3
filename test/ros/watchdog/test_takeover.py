# SPDX-License-Identifier: Apache-2.0
"""What is commanded in a node's place: within its limits, and not with more energy."""

import numpy as np
import pytest
from oracles import PinocchioArm

from robodyn_ros import RobotModel, gravity_torque, mass_matrix
from robodyn_ros.control.control_stack import continuous_joints, speed_limits
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.settings import ArmSettings
from robodyn_ros.motions.possible_positions import PossiblePositions
from robodyn_ros.ros.shared_memory import WatchdogSettings
from robodyn_ros.ros.watchdog import DISCOVERY_TIME, LONGEST_BRAKING, LastCommand, Takeover

POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
VELOCITY = np.array([0.5, 0.4, -0.5, 0.6, 0.8, -0.7, 1.0])
RATE = 1000.0
STEP = 0.002
REST_SPEED = 0.01
REST_ENERGY = 0.01  # J, below which damping is not switched off


@pytest.fixture(scope='module')
def model(panda_urdf):
    model = RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')
    Scene.plant = PinocchioArm.of(panda_urdf, model)
    return model


def arm_limits(model):
    return ReferenceLimits(
        model.joint_names,
        model.position_limits,
        speed_limits(model),
        continuous_joints(model),
        PossiblePositions.of(model),
    )


class Scene:
    """An arm without friction, its driver and a takeover, on a clock that the test turns."""

    plant: PinocchioArm

    def __init__(
        self,
        model,
        velocity=VELOCITY,
        last=None,
        mode='gravity_compensation',
        limits=None,
        **changes,
    ):
        n = model.n
        given = {
            'mode': mode,
            'kp': np.full(n, 100.0),
            'kd': np.full(n, 20.0),
            'terms_gravity_factor': np.ones(n),
            'impedance_stiffness': np.zeros(n),
            'impedance_nullspace_stiffness': np.zeros(n),
            'effort_limits': model.effort_limits,
            'torque_rate_limit': np.full(n, RATE),
            'braking_acceleration': np.full(n, np.inf),
            'max_following_error': np.inf,
            'damping': 0.0,
            'observer_gain': np.full(n, 30.0),
        }
        self.settings = ArmSettings(**{**given, **changes})
        settings = WatchdogSettings(
            order=np.arange(n),
            command_scale=np.ones(n),
            watchdog_period=0.01,
            arm=self.settings,
            limits=arm_limits(model) if limits is None else limits,
        )
        self.model, self.now = model, 100.0
        self.position, self.velocity = POSITION.copy(), np.array(velocity, dtype=float)
        torque = gravity_torque(model, POSITION) if last is None else last
        self.last = LastCommand(self.now, torque, POSITION)
        self.takeover = Takeover(model, settings, self.last, self.now)
        self.sign = np.ones(n)  # of the velocities that are reported
        self.torques, self.energies = [torque], [self.energy]

    @property
    def energy(self):
        return 0.5 * self.velocity @ self.plant.mass_matrix(self.position) @ self.velocity

    def report(self, velocity=True):
        self.takeover.joint_states.receive(
            self.model.joint_names,
            self.position.tolist(),
            (self.sign * self.velocity).tolist() if velocity else [],
            received=self.now,
            stamp=self.now,
        )

    def step(self, alive, report=True):
        """Let one period pass, and return what was commanded at its beginning."""
        if report:
            self.report()
        self.last_position = self.position.copy()
        torque = self.takeover.command(self.now, alive)
        if torque is not None:
            self.torques.append(torque)
        for _ in range(2):
            acceleration = self.plant.acceleration(self.position, self.velocity, self.torques[-1])
            self.velocity += acceleration * STEP / 2
            self.position += self.velocity * STEP / 2
        self.now += STEP
        self.energies.append(self.energy)
        return torque

    def run(self, seconds, alive, **options):
        for _ in range(round(seconds / STEP)):
            if self.takeover.is_over:
                return
            self.step(alive, **options)

    def check_limits(self):
        torques = np.array(self.torques)
        assert np.isfinite(torques).all()
        assert (np.abs(torques) <= self.settings.effort_limits).all()
        assert np.abs(np.diff(torques, axis=0)).max() <= RATE * STEP + 1e-9


def pushed(model, **changes):
    """Push an arm that has been carried at rest; return the scene and the first answer to that."""
    rates = np.full(7, np.inf)
    scene = Scene(model, velocity=np.zeros(7), torque_rate_limit=rates, **changes)
    for k in range(-50, 0):
        scene.velocity = (k >= -12) * VELOCITY
        scene.position = POSITION + max(k, -12) * STEP * VELOCITY
        scene.report()
        scene.takeover.command(scene.now, True)
        scene.now += STEP
    scene.position = POSITION.copy()
    return scene, scene.step(alive=True)


@pytest.mark.longer
def test_arm_is_left_to_somebody_else_at_once(model):
    scene = Scene(model, velocity=np.zeros(7), stale_hold_time=100.0)
    scene.run(1.0, alive=False)
    assert not scene.takeover.is_over
    scene.takeover.yield_commands()
    assert scene.step(alive=False) is not None and scene.takeover.is_over


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('alive', [True, False])
def test_moving_arm_is_braked_to_rest_and_its_energy_only_falls(model, alive):
    scene = Scene(model, stale_hold_time=0.1)
    scene.run(1.0, alive)
    energies = np.array(scene.energies)
    assert np.diff(energies).max() < 1e-4 * energies[0]
    assert energies[-1] < 1e-3 * energies[0]
    assert scene.takeover.is_over != alive
    scene.check_limits()


@pytest.mark.repeats(test=1)
@pytest.mark.longer
@pytest.mark.parametrize('period', [0.02, 0.05, 0.09])
def test_joint_states_that_come_seldom_do_not_make_braking_an_engine(model, period):
    scene = Scene(model, torque_rate_limit=np.full(7, np.inf))
    for _ in range(round(2.0 / period)):
        scene.report()
        scene.run(period, alive=True, report=False)
    assert max(scene.energies) < 1.6 * scene.energies[0]
    assert scene.energies[-1] < scene.energies[0]


@pytest.mark.longer
def test_braking_that_drives_the_arm_is_given_up(model):
    scene = Scene(model, velocity=0.1 * VELOCITY, torque_rate_limit=np.full(7, np.inf))
    first = scene.energy
    scene.sign[3] = -1.0  # of a velocity
    scene.run(2.0, alive=True)
    assert max(scene.energies) < 1.6 * max(first, REST_ENERGY)
    left = gravity_torque(model, scene.last_position)
    assert scene.torques[-1] == pytest.approx(left, abs=1e-6)


@pytest.mark.longer
@pytest.mark.parametrize('after', [0.01, 2.0])
def test_an_arm_that_somebody_pushes_is_braked_again_and_again(model, after):
    scene = Scene(model, torque_rate_limit=np.full(7, np.inf))
    scene.run(after, alive=True)
    scene.velocity += VELOCITY
    begun = scene.energy
    scene.run(1.0, alive=True)
    assert scene.energy < 1e-3 * begun
    assert scene.step(alive=True) is not None


def test_arm_is_left_at_rest_with_gravity_when_the_node_is_gone(model):
    scene = Scene(model)
    scene.run(10.0, alive=False)
    hold_time = scene.settings.stale_hold_time
    assert scene.takeover.is_over and 100.0 + hold_time < scene.now < 102.0 + hold_time
    assert (np.abs(scene.velocity) < 2.0 * REST_SPEED).all()
    left = gravity_torque(model, scene.position)
    assert scene.torques[-1] == pytest.approx(left, abs=0.05)


@pytest.mark.longer
def test_first_command_continues_the_last_one_of_the_node(model):
    far = gravity_torque(model, POSITION) + np.array([5.0, -5.0, 5.0, 5.0, 2.0, -2.0, 1.0])
    scene = Scene(model, last=far)
    scene.now += STEP
    scene.step(alive=False)
    assert np.abs(scene.torques[1] - far).max() <= RATE * STEP + 1e-9
    scene.run(1.0, alive=False)
    scene.check_limits()


def test_arm_that_the_drives_cannot_carry_any_more_is_carried_as_far_as_they_can(model):
    gravity = gravity_torque(model, POSITION)
    limits = np.maximum(0.5 * np.abs(gravity), 1.0)
    scene = Scene(model, effort_limits=limits, torque_rate_limit=np.full(7, np.inf))
    scene.now += STEP
    clipped = np.clip(gravity, -limits, limits)
    for report in (False, True):
        assert scene.step(alive=False, report=report) == pytest.approx(clipped, abs=3.0)


def test_first_command_is_made_at_once_without_joint_states(model):
    scene = Scene(model, last=gravity_torque(model, POSITION) + 5.0)
    scene.run(0.02, alive=True, report=False)
    assert len(scene.torques) == 11
    assert scene.torques[-1] == pytest.approx(gravity_torque(model, POSITION))


def test_small_effort_limits_scale_the_braking_and_keep_its_direction(model):
    gravity = np.abs(gravity_torque(model, POSITION))
    scene, torque = pushed(model, effort_limits=gravity + 1.0)
    braking = torque - gravity_torque(model, POSITION)
    wanted = -mass_matrix(model, POSITION) @ VELOCITY
    direction = wanted / np.linalg.norm(wanted)
    assert braking / np.linalg.norm(braking) == pytest.approx(direction, abs=1e-6)
    assert np.abs(torque / scene.settings.effort_limits).max() == pytest.approx(1.0)


def test_braking_acceleration_bounds_the_deceleration(model):
    _, torque = pushed(model, braking_acceleration=np.full(7, 2.0))
    braking = torque - gravity_torque(model, POSITION)
    deceleration = -np.linalg.solve(mass_matrix(model, POSITION), braking)
    assert np.abs(deceleration).max() == pytest.approx(2.0, rel=1e-4)
    assert deceleration / np.abs(deceleration).max() == pytest.approx(VELOCITY, rel=1e-4)


def test_a_driver_with_a_loop_of_its_own_is_given_gravity_and_one_with_gravity_braking(model):
    _, torque = pushed(model, mode='feedforward')
    assert torque == pytest.approx(gravity_torque(model, POSITION), abs=1e-5)
    _, torque = pushed(model, terms_gravity=False)
    assert torque == pytest.approx(-10.0 * mass_matrix(model, POSITION) @ VELOCITY)


def test_unknown_velocities_get_gravity_where_the_arm_is(model):
    scene = Scene(model)
    scene.position += 0.01
    scene.report(velocity=False)
    torque = scene.takeover.command(scene.now + 0.01, True)
    assert torque == pytest.approx(gravity_torque(model, scene.position))
    assert not scene.takeover.is_over


def test_zero_is_approached_at_the_rate_limit_then_it_is_over(model):
    scene = Scene(model, on_stop='zero')
    scene.run(1.0, alive=False, report=False)
    assert scene.takeover.is_over
    assert (scene.torques[-1] == 0.0).all()
    assert len(scene.torques) >= np.abs(scene.torques[0]).max() / (RATE * STEP)
    scene.check_limits()


def test_silent_says_nothing(model):
    scene = Scene(model, on_stale_state='silent', on_stop='silent')
    assert scene.step(alive=True) is None and not scene.takeover.is_over
    assert scene.step(alive=False) is None and scene.takeover.is_over


@pytest.mark.longer
@pytest.mark.parametrize('changes', [{}, {'stale_hold_time': 0.0}])
def test_without_joint_states_gravity_is_held_for_the_hold_time_or_until_they_could_come(
    model, changes
):
    scene = Scene(model, velocity=np.zeros(7), **changes)
    scene.run(10.0, alive=False, report=False)
    assert scene.takeover.is_over
    hold_time = max(scene.settings.stale_hold_time, DISCOVERY_TIME)
    assert changes or hold_time > DISCOVERY_TIME
    assert hold_time <= scene.now - 100.0 <= hold_time + 3.5 * STEP
    assert scene.torques[-1] == pytest.approx(gravity_torque(model, POSITION))


@pytest.mark.longer
def test_joint_states_that_pause_once_the_node_is_gone_are_waited_for_and_braking_goes_on(model):
    scene = Scene(model)
    scene.run(0.1, alive=False)
    scene.run(0.3, alive=False, report=False)
    assert not scene.takeover.is_over
    scene.run(10.0, alive=False)
    assert scene.takeover.is_over
    assert (np.abs(scene.velocity) < 2.0 * REST_SPEED).all()
    scene.check_limits()


@pytest.mark.longer
def test_hung_node_without_joint_states_is_held_for_the_hold_time_only(model):
    scene = Scene(model, velocity=np.zeros(7))
    scene.run(0.99, alive=True, report=False)
    assert scene.step(alive=True, report=False) is not None
    scene.now += 0.1
    assert scene.step(alive=True, report=False) is None
    assert not scene.takeover.is_over


def test_arm_that_never_comes_to_rest_is_given_up_after_four_seconds(model):
    scene, phase = Scene(model), 0.5 * np.pi * np.arange(7)
    while not scene.takeover.is_over:
        assert scene.now < 100.0 + LONGEST_BRAKING + scene.settings.stale_hold_time + 0.1
        angle = phase + 5.0 * (scene.now - 100.0)  # something drives it, and never all of it rests
        scene.velocity[:] = VELOCITY * np.cos(angle)
        scene.position[:] = POSITION + 0.2 * VELOCITY * np.sin(angle)
        scene.report()
        scene.takeover.command(scene.now, False)
        scene.now += 0.02
    assert scene.now >= 100.0 + LONGEST_BRAKING


def test_joint_states_that_stop_while_braking_leave_the_gravity_known_last(model):
    scene = Scene(model)
    scene.run(0.1, alive=True)
    position, velocity = scene.position.copy(), scene.velocity.copy()
    scene.run(0.2, alive=True, report=False)
    timeout = scene.settings.state_timeout
    left = gravity_torque(model, position + timeout * velocity)
    assert scene.torques[-1] == pytest.approx(left, abs=0.05)
    assert (scene.torques[-1] == scene.torques[-40]).all()


def test_absurd_joint_states_get_no_absurd_torque(model):
    scene = Scene(model, velocity=np.zeros(7))
    scene.velocity = np.full(7, 1e308)
    scene.report()
    torque = scene.takeover.command(scene.now + 0.01, True)
    assert torque == pytest.approx(gravity_torque(model, POSITION))
