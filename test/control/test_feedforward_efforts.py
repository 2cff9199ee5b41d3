# SPDX-License-Identifier: Apache-2.0
"""A trajectory's effort is the model's torque all the way, as the controller interpolates it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from control_arm import terms as given_terms
from control_arm import torque_parts
from jtc_rule import JointTrajectoryController, executed, rms
from robots import public_urdf

import robodyn_ros as rd
from robodyn_ros.control.command_pipeline import ControlLaw
from robodyn_ros.control.feedforward_efforts import (
    FeedforwardSettings,
    TrajectoryFeedforward,
    with_feedforward_efforts,
)
from robodyn_ros.control.joint_state_buffer import ElapsedTime
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings, arm_settings, checked
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.errors import RejectedTrajectory

TIPS = {'panda.urdf': 'panda_link8', 'ur5_robot.urdf': 'tool0', 'xarm7.urdf': 'link7'}
PERIOD = 1e-3
SECONDS = 4


def arm(name='panda.urdf'):
    return rd.RobotModel.from_urdf(public_urdf(name), tip_link=TIPS[name])


MODEL = arm()


def limits_of(model):
    limits = model.effort_limits
    return np.where(np.isfinite(limits) & (limits > 0.0), limits, 200.0)


def motion(model=MODEL, fields='pva', seed=1, speed=1.0):
    """Return a smooth motion from rest to rest through waypoints a second apart."""
    generator = np.random.default_rng(seed)
    low, high = np.clip(model.position_limits, -3.0, 3.0).T
    middle, reach = 0.5 * (low + high), np.minimum(0.5 * (high - low), 1.0)
    times = np.arange(SECONDS + 1.0)
    positions = middle + 0.5 * speed * reach * generator.uniform(-1, 1, (SECONDS + 1, model.n))
    velocities = np.gradient(positions, times, axis=0)
    velocities[[0, -1]] = 0.0
    nothing = np.full_like(positions, np.nan)
    return Trajectory(
        model.joint_names,
        times,
        positions,
        velocities if 'v' in fields else nothing,
        np.zeros_like(positions) if 'a' in fields else nothing,
        np.zeros_like(positions),
    )


def filled(trajectory, model=MODEL, torque=None, beginning=None, begin=0.0, **changes):
    settings = replace(FeedforwardSettings.of(limits_of(model)), **changes)
    torque = torque or ReferenceTorque.of(model)
    return with_feedforward_efforts(trajectory, torque, settings, beginning=beginning, begin=begin)


def with_friction(model, q, qd, qdd):
    """Return the torque of an arm that has viscous friction alone."""
    assert not model.coulomb_friction.any()
    return rd.inverse_dynamics(model, q, qd, qdd) + model.viscous_friction * qd


def acceleration(path, time):
    """Return what the controller's path asks for, without asking for it: by differences."""
    h = 1e-5
    ahead, behind = path.sample(time + h)[1], path.sample(time - h)[1]
    return (ahead - behind) / (2.0 * h)


# --- what the controller makes of it -----------------------------------------------------------


def pd_gains(model, positions, rate=50.0):
    """
    Return gains (n,) that let each joint come to rest at a rate [1/s] while the others are free.

    On the diagonal of the inverse of M stand the inertias that the joints have then. With those of
    M, which hold for joints blocked by the others, the Panda's fastest mode is 47 times as stiff.
    """
    inverses = np.linalg.inv([rd.mass_matrix(model, q) for q in positions])
    inertia = (1.0 / np.diagonal(inverses, axis1=1, axis2=2)).min(axis=0)
    return rate**2 * inertia, 2.0 * rate * inertia


@pytest.mark.longer
@pytest.mark.repeats(check=1)
@pytest.mark.parametrize(
    'name, fields', [*((name, 'pva') for name in TIPS), ('panda.urdf', 'pv'), ('panda.urdf', 'p')]
)
def test_joint_trajectory_controller_follows_twenty_times_better_than_by_its_pd(name, fields):
    pytest.importorskip('mujoco')
    from robodyn_ros.simulation.arm import ArmSimulation

    model = arm(name)
    simulation = ArmSimulation.from_urdf(public_urdf(name), tip_link=TIPS[name], time_step=PERIOD)
    given = motion(model, fields)
    points = filled(given, model).trajectory
    gains = pd_gains(model, given.positions)
    alone = replace(points, efforts=np.zeros_like(points.efforts))
    by_pd = executed(simulation, JointTrajectoryController(alone, *gains), SECONDS)
    by_model = executed(simulation, JointTrajectoryController(points, *gains), SECONDS)
    assert rms(by_pd) < 0.2  # it follows by its PD, too
    assert rms(by_model) < 1e-3
    assert rms(by_pd) > 20.0 * rms(by_model)


@pytest.mark.parametrize('fields', ['pva', 'pv', 'p'])
def test_interpolated_effort_is_the_torque_within_the_bound_but_for_a_period_after_jumps(fields):
    result = filled(motion(fields=fields))
    path = JointTrajectoryController(result.trajectory, 0.0, 0.0)
    bound = 1e-3 * limits_of(MODEL)
    generator = np.random.default_rng(2)
    for time in generator.uniform(0.0, SECONDS, 300):
        if min(time % 1.0, 1.0 - time % 1.0) < 2.0 * PERIOD:
            continue  # at the given waypoints
        q, qd, effort = path.sample(time)
        torque = with_friction(MODEL, q, qd, acceleration(path, time))
        assert (np.abs(effort - torque) < 1.05 * bound + 1e-4).all(), time
    assert (result.largest_error <= bound).all()


@pytest.mark.parametrize('fields', ['pva', 'pv'])
def test_path_that_the_controller_makes_is_that_of_the_given_points(fields):
    given = motion(fields=fields)
    before = JointTrajectoryController(given, 0.0, 0.0)
    after = JointTrajectoryController(filled(given).trajectory, 0.0, 0.0)
    for time in np.linspace(0.0, SECONDS, 333):
        for part in (0, 1):
            np.testing.assert_allclose(
                after.sample(time)[part], before.sample(time)[part], atol=1e-9
            )


def test_given_points_are_kept_to_the_bit():
    given = motion(fields='pv')
    points = filled(given).trajectory
    rows = np.searchsorted(points.times, given.times)
    np.testing.assert_array_equal(points.times[rows], given.times)
    np.testing.assert_array_equal(points.positions[rows], given.positions)
    np.testing.assert_array_equal(points.velocities[rows], given.velocities)
    assert np.isnan(points.accelerations).all()


@pytest.mark.parametrize('fields', ['pv', 'pva'])
def test_torque_jumps_within_one_period_where_the_acceleration_does(fields):
    given = motion(fields=fields)
    given = replace(given, accelerations=given.accelerations + 2.0 * (fields == 'pva'))
    path = JointTrajectoryController(given, 0.0, 0.0)
    points = filled(given).trajectory
    zero = np.zeros(MODEL.n)
    held = rd.gravity_torque(MODEL, given.positions[0])
    np.testing.assert_allclose(points.efforts[0], held, atol=1e-9)
    assert points.times[1] == pytest.approx(PERIOD)
    q, qd, _ = path.sample(PERIOD)
    moving = with_friction(MODEL, q, qd, acceleration(path, PERIOD))
    np.testing.assert_allclose(points.efforts[1], moving, atol=0.01)
    if fields == 'pv':
        before, behind = (np.searchsorted(points.times, t) for t in (2.0, 2.0 + 0.5 * PERIOD))
        assert points.times[behind] == pytest.approx(2.0 + PERIOD)
        q, qd, _ = path.sample(2.0)
        left = (qd - path.sample(2.0 - 1e-7)[1]) / 1e-7
        np.testing.assert_allclose(
            points.efforts[before], with_friction(MODEL, q, qd, left), atol=1e-5
        )
    # The end is held without the acceleration that led to it.
    held = rd.inverse_dynamics(MODEL, given.positions[-1], zero, zero)
    np.testing.assert_allclose(points.efforts[-1], held, atol=1e-9)
    assert points.times[-1] == pytest.approx(SECONDS + PERIOD)
    np.testing.assert_array_equal(points.positions[-1], given.positions[-1])


def test_smaller_bound_takes_more_points_and_a_tiny_one_all_there_may_be():
    given, limits = motion(), limits_of(MODEL)
    coarse = filled(given, error_bound=1e-2 * limits)
    fine = filled(given, error_bound=1e-4 * limits)
    tiny = filled(given, error_bound=1e-9 * limits)
    assert coarse.inserted < fine.inserted
    assert len(tiny.trajectory.times) == MOST_POINTS
    assert any('is off by up to' in note for note in tiny.notes)
    assert fine.notes == ()
    assert (tiny.largest_error < fine.largest_error).all()


# --- what it leaves open -----------------------------------------------------------------------


@pytest.mark.longer
def test_waypoints_with_positions_only_are_completed_so_that_velocity_does_not_jump():
    given = motion(fields='p')
    result = filled(given)
    path = JointTrajectoryController(result.trajectory, 0.0, 0.0)
    times = np.linspace(0.0, SECONDS, 20001)
    velocities = np.array([path.sample(time)[1] for time in times])
    assert np.abs(np.diff(velocities, axis=0)).max() < 5e-3
    for time, position in zip(given.times, given.positions, strict=True):
        np.testing.assert_allclose(path.sample(time)[0], position, atol=1e-12)
    assert 'positions only' in result.notes[0]


def test_late_first_waypoint_is_preceded_by_where_the_arm_is():
    given = motion(fields='pv')
    given = replace(given, times=given.times + 0.5)
    start = given.positions[0] + 0.1
    result = filled(given, beginning=ReferenceState.at_rest(start))
    points = result.trajectory
    assert points.times[0] == 0.0
    np.testing.assert_allclose(points.positions[0], start)
    np.testing.assert_allclose(points.velocities[0], 0.0)
    np.testing.assert_allclose(points.efforts[0], rd.gravity_torque(MODEL, start), atol=1e-9)
    assert any('where the arm is' in note for note in result.notes)


def test_first_waypoint_at_once_is_the_first_point():
    given = motion(fields='pv')
    start = ReferenceState.at_rest(given.positions[0] + 0.1)
    points = filled(given, beginning=start).trajectory
    np.testing.assert_array_equal(points.positions[0], given.positions[0])


def test_trajectory_that_begins_in_the_past_goes_on_from_where_the_arm_is_by_now():
    given = motion(fields='pv')
    given = replace(given, times=given.times + 2.0)
    start = ReferenceState.at_rest(given.positions[0])
    points = filled(given, beginning=start, begin=1.25).trajectory
    assert points.times[0] == 1.25


def test_continuous_joint_begins_less_than_half_a_turn_from_its_first_waypoint():
    urdf = (
        '<robot name="wheel"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<origin xyz="0.3 0 0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="j" type="continuous"><parent link="base"/>'
        '<child link="arm"/><axis xyz="0 1 0"/><limit effort="50" velocity="9"/></joint></robot>'
    )
    model = rd.RobotModel.from_urdf_text(urdf)
    given = Trajectory.from_points(['j'], [1.0], [[6.5]], [[0.0]], [()], [()])
    start = ReferenceState.at_rest(np.array([0.2]))
    points = filled(given, model, beginning=start).trajectory
    assert points.positions[0, 0] == pytest.approx(0.2 + 2.0 * np.pi)
    assert points.positions[-1, 0] == 6.5


def test_joints_that_are_not_named_are_held_where_they_are():
    whole = motion(fields='pv')
    names = ('panda_joint4', 'panda_joint2')
    columns = [MODEL.joint_names.index(name) for name in names]
    given = Trajectory(
        names,
        whole.times,
        *(part[:, columns] for part in (whole.positions, whole.velocities)),
        whole.accelerations[:, columns],
        whole.efforts[:, columns],
    )
    start = ReferenceState.at_rest(whole.positions[0])
    result = filled(given, beginning=start)
    points = result.trajectory
    assert points.joint_names[:2] == names
    assert sorted(points.joint_names) == sorted(MODEL.joint_names)
    others = [MODEL.joint_names.index(name) for name in points.joint_names[2:]]
    np.testing.assert_allclose(points.positions[:, 2:] - start.position[others], 0.0, atol=1e-12)
    order = [MODEL.joint_names.index(name) for name in points.joint_names]
    end = np.empty(MODEL.n)
    end[order] = points.positions[-1]
    np.testing.assert_allclose(points.efforts[-1], rd.gravity_torque(MODEL, end)[order], atol=1e-9)
    assert any(note.startswith('held: ') for note in result.notes)


def test_joint_that_is_not_named_and_moves_comes_to_rest():
    whole = motion()
    names = MODEL.joint_names[:6]
    given = Trajectory(
        names, whole.times, *(part[:, :6] for part in list(vars(whole).values())[2:6])
    )
    start = replace(ReferenceState.at_rest(whole.positions[0]), velocity=np.eye(7)[6])
    points = filled(given, beginning=start, begin=-0.25).trajectory
    assert points.velocities[0, 6] == 1.0
    assert points.velocities[-1, 6] == 0.0
    assert points.positions[-1, 6] == pytest.approx(start.position[6] + 0.25)


def test_single_point_is_given_the_torque_that_holds_it():
    position = motion().positions[:1]
    names = MODEL.joint_names
    given = Trajectory.from_points(names, [0.0], position, [()], [()], [()])
    points = filled(given).trajectory
    assert len(points.times) == 1
    np.testing.assert_allclose(points.efforts, rd.gravity_torque(MODEL, position), atol=1e-9)


# --- what counts -------------------------------------------------------------------------------


def test_payload_friction_terms_and_command_scale_count():
    model = arm().with_payload(rd.Payload(2.0, (0.0, 0.05, 0.1)))
    model = replace(model, coulomb_friction=np.full(7, 0.5), viscous_friction=np.full(7, 0.2))
    given = motion(model, 'pva')
    scale = np.array([2.0, -1.0, 0.5, 1.0, 3.0, 1.0, 1.0])
    settings = ControlSettings(terms_inertial=False, terms_gravity=False, friction_velocity=0.05)
    points = filled(given, model, ReferenceTorque.of(model, settings), command_scale=scale)
    points = points.trajectory
    q, qd = points.positions, points.velocities
    zero = np.zeros_like(q)
    rest = rd.gravity_torque(model, q)
    coriolis = rd.inverse_dynamics(model, q, qd, zero) - rest
    friction = smooth_friction_torque(model, 0.05, qd)
    np.testing.assert_allclose(points.efforts, (coriolis + friction) * scale, atol=1e-6)


@pytest.mark.parametrize('terms', list(itertools.product((False, True), repeat=4)))
def test_it_is_what_the_node_commands_in_feedforward(terms):
    model = replace(arm(), coulomb_friction=np.full(7, 0.5), load_friction=np.full(7, 0.1))
    rigid = RigidBodyTorque('newton_euler')
    functions = rigid.under(model), rigid.friction(model)
    factor = (0.5, 1.0, 2.0, 0.0, 1.0, 1.5, 1.0) if terms[0] else (1.0,)
    settings = ControlSettings(
        mode='feedforward', terms_gravity_factor=factor, **given_terms(*terms)
    )
    node = torque_parts(ControlLaw(*functions, arm_settings(model, settings)), np.zeros(7))
    q, qd, qdd = np.random.default_rng(4).uniform(-1.0, 1.0, (3, 20, 7))
    zero = np.zeros(7)
    expected = [node(zero, zero, ReferenceState(*state, zero)).total for state in zip(q, qd, qdd)]
    found = ReferenceTorque.of(model, settings, rigid).at(q, qd, qdd)
    np.testing.assert_allclose(found, expected, atol=1e-9)


# --- what it refuses ---------------------------------------------------------------------------


def test_torque_beyond_a_limit_is_refused_with_joint_time_and_torque():
    given = motion()
    limits = limits_of(MODEL)
    limits[3] = 5.0
    with pytest.raises(RejectedTrajectory) as refused:
        filled(given, effort_limits=limits)
    element = refused.value.element
    assert "'panda_joint4' torque at" in element
    time = float(element.split()[-2])
    path = JointTrajectoryController(given, 0.0, 0.0)
    q, qd, _ = path.sample(time)
    torque = rd.inverse_dynamics(MODEL, q, qd, acceleration(path, max(time, 1e-4)))
    assert refused.value.value == pytest.approx(torque[3], abs=0.1)
    assert abs(refused.value.value) > 5.0


def test_limit_that_is_passed_only_between_waypoints_is_seen():
    given = motion()
    result = filled(given)
    path = JointTrajectoryController(result.trajectory, 0.0, 0.0)
    at_waypoints = np.array([path.sample(time)[2] for time in given.times])
    joint = int(np.argmax(result.largest_torque - np.abs(at_waypoints).max(axis=0)))
    limits = limits_of(MODEL)
    limits[joint] = 0.999 * result.largest_torque[joint]
    assert limits[joint] > np.abs(at_waypoints[:, joint]).max()
    with pytest.raises(RejectedTrajectory, match=MODEL.joint_names[joint]):
        filled(given, effort_limits=limits)


def test_effort_that_is_given_already_is_refused():
    given = motion()
    with pytest.raises(RejectedTrajectory, match='effort'):
        filled(replace(given, efforts=given.efforts + 1.0))
    with pytest.raises(RejectedTrajectory, match='effort'):
        filled(filled(given, MODEL).trajectory)


def test_unknown_joint_and_joints_of_unknown_position_are_refused():
    foreign = Trajectory.from_points(['finger'], [1.0], [[0.1]], [()], [()], [()])
    with pytest.raises(RejectedTrajectory, match='finger'):
        filled(foreign)
    partial = Trajectory.from_points(['panda_joint1'], [1.0], [[0.1]], [()], [()], [()])
    with pytest.raises(RejectedTrajectory, match='panda_joint2'):
        filled(partial)


def with_a_neck(trajectory):
    """Return a trajectory of a joint besides that moves nothing of the arm."""
    row, names = np.full(len(trajectory.times), 0.2), ('neck', *trajectory.joint_names)
    parts = ('positions', 'velocities', 'accelerations', 'efforts')
    wider = {name: np.column_stack([0.0 * row, getattr(trajectory, name)]) for name in parts}
    wider['positions'][:, 0] = row
    return replace(trajectory, joint_names=names, **wider)


def test_joint_that_moves_nothing_of_the_arm_is_left_out_and_said():
    one, arm_alone = filler(), filler()
    one.arm = replace(one.arm, unmodelled_joints=('neck',))
    given = bare(one.arm)
    for found, expected in (
        (
            filled(with_a_neck(motion()), replace(MODEL, unmodelled_joints=('neck',))),
            filled(motion()),
        ),
        (one.with_efforts(with_a_neck(given), 1.0), arm_alone.with_efforts(given, 1.0)),
    ):
        assert 'left out: neck' in found.notes
        assert found.trajectory.joint_names == expected.trajectory.joint_names
        np.testing.assert_array_equal(found.trajectory.efforts, expected.trajectory.efforts)


@pytest.mark.parametrize('size', [1e150, 1e300, 1.7e308])
def test_numbers_too_large_are_refused(size):
    given = motion()
    with pytest.raises(RejectedTrajectory):
        filled(replace(given, positions=given.positions * size))


def test_points_beyond_the_most_with_the_beginning_are_refused():
    position = motion().positions[0]
    times = np.linspace(0.001, 10.0, MOST_POINTS)
    rows = np.tile(position, (MOST_POINTS, 1))
    none = np.full_like(rows, np.nan)
    given = Trajectory(MODEL.joint_names, times, rows, 0.0 * rows, none, 0.0 * rows)
    start = ReferenceState.at_rest(position)
    with pytest.raises(RejectedTrajectory, match='points'):
        filled(given, beginning=start)
    assert len(filled(given).trajectory.times) == MOST_POINTS


STANCE = np.array([0.1, -0.3, 0.2, -1.8, 0.3, 1.6, 0.5])


def filler(elapsed=None):
    """Return a filler for a Panda that has stood at STANCE at steady time 1 s, stamped 50 s."""
    values = {'urdf_file': str(public_urdf('panda.urdf')), 'tip_link': TIPS['panda.urdf']}
    settings = checked({**values, 'algorithm': 'newton_euler'})
    result = TrajectoryFeedforward(settings, None, 0.1, 0.002, elapsed)
    result.joint_states.receive(
        result.arm.joint_names, STANCE, 0.0 * STANCE, received=1.0, stamp=50.0
    )
    result.take_state()
    return result


def bare(model, goal=STANCE + 0.005):
    none = [()]
    return Trajectory.from_points(model.joint_names, [1.0], goal[None], none, none, none)


def test_note_about_the_first_point_has_no_signed_zero():
    for wait in (None, 0.0):
        one = filler()
        notes = one.with_efforts(bare(one.arm), 1.0, wait).notes
        assert 'begins with a point at 0 s, where the arm is' in notes


def test_trajectory_is_filled_while_simulated_time_stands_still_and_refused_without():
    one = filler(ElapsedTime(lambda: 50.01))
    one.with_efforts(bare(one.arm), 31.0)
    with pytest.raises(RejectedTrajectory, match='none of panda_joint1'):
        filler().with_efforts(bare(one.arm), 31.0)
    with pytest.raises(RejectedTrajectory, match='none of panda_joint1'):
        filler(ElapsedTime(lambda: 50.2)).with_efforts(bare(one.arm), 31.0)


def test_trajectory_goes_on_from_where_simulated_time_has_brought_what_was_sent():
    simulated = 50.0
    one = filler(ElapsedTime(lambda: simulated))
    given = bare(one.arm)
    one.with_efforts(given, 1.0)
    simulated = 50.05  # and ten seconds of steady time: the arm has hardly begun to move
    begin = one.with_efforts(given, 11.0).trajectory.positions[0]
    assert 0.0 < np.abs(begin - STANCE).max() < 5e-4


# --- where a trajectory begins on a soft drive -------------------------------------------------

SAG = np.array([0.0, -0.18, 0.0, 0.14, 0.0, 0.05, 0.0])  # of an arm that carries more than is told
GOAL = STANCE + 0.1
RATE = 100.0  # of the joint states [Hz]


class Soft:
    """
    A filler, an arm that follows off by a sag, and the controller that executes what is sent.

    Parameters
    ----------
    servo_gains : sequence of float
        The parameter of the node.
    retime : float
        The parameter of the node.
    """

    def __init__(self, servo_gains=(), retime=0.0):
        values = {'urdf_file': str(public_urdf('panda.urdf')), 'tip_link': TIPS['panda.urdf']}
        settings = checked({**values, 'algorithm': 'newton_euler'})
        extra = {'servo_gains': servo_gains, 'retime': retime, 'largest_offset': (0.3,)}
        self.filler = TrajectoryFeedforward(settings, None, 0.1, 0.002, **extra)
        self.arm, self.now, self.sag = self.filler.arm, 1.0, 0.0 * STANCE
        self.controller, self.began = None, 1.0
        self.run(0.1)

    def told(self, time=None):
        """Return position and velocity that the controller is told now."""
        if self.controller is None:
            return STANCE, 0.0 * STANCE
        time = (self.now if time is None else time) - self.began
        return self.controller.sample(max(time, self.controller.trajectory.times[0]))[:2]

    def state(self, position):
        self.now += 1.0 / RATE
        self.filler.joint_states.receive(
            self.arm.joint_names, position, 0.0 * STANCE, received=self.now, stamp=self.now
        )
        self.filler.take_state()

    def run(self, duration, sag=None):
        """Follow for a time, the sag changing to another one as that of a spring, if given."""
        start, steps = self.sag, round(duration * RATE)
        for k in range(1, steps + 1):
            if sag is not None:
                self.sag = start + (sag - start) * np.sin(0.5 * np.pi * k / steps)
            self.state(self.told(self.now + 1.0 / RATE)[0] + self.sag)

    def send(self, trajectory=None, wait=None):
        """Return the answer to a trajectory, by default to the goal, or to a hold."""
        result = self.filler.with_efforts(trajectory or bare(self.arm, GOAL), self.now, wait)
        return self.take(result)

    def hold(self):
        return self.take(self.filler.hold(self.now))

    def take(self, result):
        self.controller = JointTrajectoryController(result.trajectory, 0.0, 0.0)
        self.began = self.now
        return result


def first(result):
    return result.trajectory.positions[0]


def off_notes(result):
    return [note for note in result.notes if note.startswith('begins off what')]


def sagged(**parameters):
    """Return the arm at rest, as far below its goal as a soft drive lets it hang."""
    soft = Soft(**parameters)
    soft.send()
    soft.run(0.8, SAG)
    soft.run(2.2)
    return soft


@pytest.mark.parametrize(
    'parameters',
    [{}, {'retime': 0.5}, {'servo_gains': (2000.0,)}],
    ids=['effort', 'retime', 'servo'],
)
def test_command_to_an_arm_that_a_soft_drive_holds_begins_where_the_drive_was_commanded(
    parameters,
):
    soft = sagged(**parameters)
    for _ in range(3):
        told = soft.told()[0]
        found = soft.send()
        np.testing.assert_allclose(first(found), told, atol=1e-9)
        assert off_notes(found) == []
        soft.run(2.0)


def test_command_within_a_motion_begins_at_the_place_and_speed_that_a_soft_drive_was_commanded():
    soft = sagged()
    soft.send(bare(soft.arm, STANCE - 0.2))
    soft.run(0.5)
    position, velocity = soft.told()
    assert np.abs(velocity).max() > 0.3
    found = soft.send()
    np.testing.assert_allclose(first(found), position, atol=1e-6)
    np.testing.assert_allclose(found.trajectory.velocities[0], velocity, atol=1e-4)


def test_hold_on_request_keeps_what_a_soft_drive_was_commanded():
    soft = sagged()
    goal = soft.told()[0]
    held = soft.hold()
    np.testing.assert_allclose(held.trajectory.positions, np.tile(goal, (2, 1)), atol=1e-9)


def test_hand_that_moved_the_arm_and_swinging_change_nothing_in_what_the_drive_was_commanded():
    soft = sagged()
    soft.run(0.5, SAG + 0.2)
    soft.run(1.0)
    np.testing.assert_allclose(first(soft.send()), GOAL, atol=1e-9)
    for k in range(12):
        soft.run(0.15, SAG + 0.1 * (-1) ** k)
    np.testing.assert_allclose(first(soft.send()), GOAL, atol=1e-9)


def assert_it_begins_where_the_arm_is(soft, reason):
    position = soft.told()[0] + soft.sag
    away = soft.sag
    found = soft.send()
    np.testing.assert_allclose(first(found), position, atol=1e-9)
    (note,) = off_notes(found)
    for name, off in zip(soft.arm.joint_names, away):
        assert (f'{name} by {off:.3g} rad' in note) == (abs(off) > 0.01)
    assert reason in note


def test_command_to_an_arm_that_falls_begins_where_it_is_and_says_how_far_below():
    soft = sagged()
    fall = np.array([0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for k in range(1, 31):  # 5 rad/s²
        soft.sag = SAG + 2.5 * (k / RATE) ** 2 * fall
        soft.state(soft.told()[0] + soft.sag)
    assert_it_begins_where_the_arm_is(soft, 'panda_joint2 moves away from it faster and faster')


def test_command_to_an_arm_further_away_than_drives_hold_one_begins_where_it_is():
    soft = sagged()
    soft.run(1.0, 6.0 * SAG)
    soft.run(2.0)
    assert_it_begins_where_the_arm_is(soft, 'more than 0.5')


def test_command_after_one_that_the_controller_did_not_take_begins_where_the_arm_is():
    soft = Soft()
    soft.send()
    for _ in range(300):
        soft.state(STANCE)
    soft.sag = STANCE - soft.told()[0]
    assert_it_begins_where_the_arm_is(soft, 'the arm stood still while it moved')


def test_command_after_a_gap_in_the_joint_states_begins_where_the_arm_is():
    soft = sagged()
    soft.now += 5.0
    soft.run(0.1)
    assert_it_begins_where_the_arm_is(soft, 'no joint states came for')


def test_arm_that_left_its_rest_may_have_been_moved_by_another_sender_where_there_may_be_one():
    soft = sagged()
    soft.filler.sent.is_only_command = False
    np.testing.assert_allclose(first(soft.send()), GOAL, atol=1e-9)
    soft.run(3.0)
    soft.run(0.5, SAG + 0.2)
    soft.run(2.0)
    assert_it_begins_where_the_arm_is(soft, 'others may have commanded the controller')


def test_command_after_what_was_sent_is_forgotten_begins_where_the_arm_is():
    soft = sagged()
    position = soft.told()[0] + soft.sag
    soft.filler.sent.forget()
    np.testing.assert_allclose(first(soft.hold()), position, atol=1e-9)


def test_command_while_one_waits_for_its_start_within_a_motion_begins_where_the_arm_is():
    """How a controller ends a motion before a later start is its own."""
    soft = sagged()
    soft.send(bare(soft.arm, STANCE - 0.3))
    soft.run(0.4)
    soft.filler.with_efforts(bare(soft.arm), soft.now, 2.0)
    position = soft.told(soft.now + 1.0 / RATE)[0] + soft.sag
    soft.run(1.0 / RATE)
    found = soft.send()
    np.testing.assert_allclose(first(found), position, atol=1e-9)
    assert 'the controller has not begun it' in off_notes(found)[0]


def test_command_sent_anew_to_an_arm_at_rest_while_one_waits_begins_where_it_was_commanded():
    soft = sagged()
    soft.filler.with_efforts(bare(soft.arm), soft.now, 5.0)
    soft.run(1.0)
    soft.filler.change(rd.Payload(0.1))
    assert soft.filler.waiting(soft.now) is not None
    soft.run(1.0)
    np.testing.assert_allclose(first(soft.send()), GOAL, atol=1e-9)
