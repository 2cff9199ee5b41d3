# SPDX-License-Identifier: Apache-2.0
"""The arm in MuJoCo is the arm of the URDF: no mass invented, nothing moves that is welded."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from robots import public_urdf

from robodyn_ros import Payload, RobotModel, forward_dynamics, gravity_torque, jacobian
from robodyn_ros.description.chain import Chain
from robodyn_ros.errors import InvalidArgument, NoBackend, NonFiniteValue, NoSolution
from robodyn_ros.motions import MotionSamples
from robodyn_ros.simulation import ArmSimulation, simulated_motion

pytest.importorskip('mujoco')


@pytest.fixture(scope='module')
def panda():
    return ArmSimulation.from_urdf(public_urdf('panda.urdf'), tip_link='panda_link8')


def link(name, mass=None):
    inertial = (
        ''
        if mass is None
        else (
            f'<inertial><origin xyz="0 0 0.1"/><mass value="{mass}"/>'
            '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
        )
    )
    return f'<link name="{name}">{inertial}</link>'


def joint(name, kind, parent, child, inside=''):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/>{inside}</joint>'
    )


def robot(*parts):
    return f'<robot name="test">{"".join(parts)}</robot>'


def slider(dynamics=''):
    """One mass of 2 kg on a horizontal rail, from 'world' to 'carriage'."""
    return robot(
        link('world'),
        link('carriage', 2.0),
        joint(
            'rail',
            'prismatic',
            'world',
            'carriage',
            '<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/>' + dynamics,
        ),
    )


def test_brakes_hold_the_arm_until_the_first_torque(panda):
    q = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.5, 0.4])
    panda.reset(q)
    for _ in range(50):
        panda.wait()
    assert panda.brakes_engaged
    assert panda.time == pytest.approx(0.05)
    np.testing.assert_array_equal(panda.position, q)
    panda.step(np.zeros(7))
    assert not panda.brakes_engaged
    assert np.all(panda.velocity != 0)


def test_viscous_friction_is_that_of_the_urdf():
    simulation = ArmSimulation.from_urdf(slider('<dynamics damping="3"/>'))
    for _ in range(20_000):
        simulation.step([1.5])
        if simulation.position[0] > 0.9:
            break
    velocity_after = simulation.time / (2.0 / 3.0)  # time constants of mass over damping
    expected = 1.5 / 3.0 * (1 - np.exp(-velocity_after))
    assert simulation.velocity[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize('push, moves', [(0.4, False), (0.6, True)])
def test_coulomb_friction_is_that_of_the_urdf(push, moves):
    simulation = ArmSimulation.from_urdf(slider('<dynamics friction="0.5"/>'))
    for _ in range(1000):
        simulation.step([push])
    # A mass of 2 kg under the force that is left travels a t^2 / 2.
    expected = (push - 0.5) / 2.0 / 2.0 if moves else 0.0
    assert simulation.position[0] == pytest.approx(expected, abs=5e-5)


def test_a_position_limit_stops_the_joint():
    simulation = ArmSimulation.from_urdf(slider())
    for _ in range(3000):
        simulation.step([2.0])
    assert simulation.position[0] == pytest.approx(1.0, abs=0.01)


def test_links_without_mass_get_none():
    simulation = ArmSimulation.from_urdf(
        robot(
            link('base'),
            link('arm', 2.0),
            link('flange'),
            link('camera', 0.0),
            joint('shoulder', 'continuous', 'base', 'arm', '<axis xyz="0 1 0"/>'),
            joint('bolt', 'fixed', 'arm', 'flange'),
            joint('glue', 'fixed', 'arm', 'camera'),
        ),
        tip_link='flange',
    )
    assert simulation._model.body_mass.sum() == pytest.approx(2.0)


def test_a_moving_link_without_mass_is_refused_and_not_given_one():
    with pytest.raises(NoSolution, match='mass'):
        ArmSimulation.from_urdf(
            robot(link('base'), link('arm'), joint('shoulder', 'continuous', 'base', 'arm'))
        )


def test_what_mujoco_refuses_is_said_in_one_line_with_the_link_and_a_remedy():
    arm = robot(
        link('base'),
        link('arm', 2.0),
        link('wrist'),
        link('hand', 1.0),
        joint('shoulder', 'continuous', 'base', 'arm'),
        joint('elbow', 'continuous', 'arm', 'wrist'),
        joint('twist', 'continuous', 'wrist', 'hand', '<axis xyz="0 0 1"/>'),
    )
    with pytest.raises(NoSolution) as caught:
        ArmSimulation.from_urdf(arm)
    message = str(caught.value)
    assert "link 'wrist'" in message
    assert '\\n' not in message
    assert '\n' not in message
    assert 'robodyn check' in message


def test_a_speck_of_a_link_and_a_finger_off_the_chain_are_simulated_with_what_carries_them():
    """Sawyer's right_hand of 1e-8 kg, and a finger of no inertia off the chain, as Fetch has."""
    speck = (
        '<link name="speck"><inertial><mass value="1e-8"/>'
        '<inertia ixx="1e-8" iyy="1e-8" izz="1e-8" ixy="1e-8" ixz="1e-8" iyz="1e-8"/>'
        '</inertial></link>'
    )
    point = (
        '<link name="finger"><inertial><origin xyz="0 0 0"/><mass value="0.1"/>'
        '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    chain = Chain.from_urdf_text(
        robot(
            link('base'),
            link('arm', 2.0),
            speck,
            point,
            joint('shoulder', 'continuous', 'base', 'arm', '<axis xyz="0 1 0"/>'),
            joint('bolt', 'fixed', 'arm', 'speck'),
            joint(
                'grip',
                'prismatic',
                'arm',
                'finger',
                '<origin xyz="0.3 0 0"/><axis xyz="1 0 0"/>',
            ),
        ),
        tip_link='speck',
    )
    simulation = ArmSimulation(chain, gravity=(0, 0, -10), time_step=1e-5)
    simulation.step([0.0])
    acceleration = simulation.velocity[0] / simulation.time_step
    # A point of 0.1 kg at 0.3 m beside the 2 kg at 0.1 m above the axis.
    inertia = 0.02 + 2 * 0.1**2 + 0.1 * 0.3**2
    assert acceleration == pytest.approx(0.1 * 10 * 0.3 / inertia, rel=1e-6)


@pytest.mark.parametrize(
    'name, tip, options',
    [
        ('panda.urdf', 'panda_link8', {}),
        ('ur5_robot.urdf', 'tool0', {}),
        ('panda.urdf', 'panda_leftfinger', {}),
        ('panda.urdf', 'panda_link8', {'locked_positions': {'panda_finger_joint1': 0.04}}),
        ('tiago.urdf', 'xtion_optical_frame', {'locked_positions': {'arm_2_joint': -1.0}}),
        ('kinova.urdf', 'j2s6s200_end_effector', {'mimic': 'independent'}),
        ('baxter.urdf', ['left_gripper', 'right_gripper'], {}),
        ('panda.urdf', ['panda_rightfinger', 'panda_leftfinger'], {'mimic': 'independent'}),
    ],
)
def test_one_step_is_forward_dynamics_of_the_same_arm_pushed_at_its_tips(name, tip, options):
    chain = Chain.from_urdf(public_urdf(name), tip_link=tip, **options)
    gravity = np.array([1.0, -2.0, -9.0])
    model = RobotModel.from_chain(chain, gravity=gravity)
    step = 1e-7
    simulation = ArmSimulation(chain, gravity=gravity, time_step=step)
    simulation._model.dof_damping[:] = simulation._model.dof_frictionloss[:] = 0.0
    assert simulation.joint_names == model.joint_names
    generator = np.random.default_rng(3)
    lower, upper = np.clip(model.position_limits, -1.0, 1.0).T
    for _ in range(5):
        q = generator.uniform(0.7 * lower + 0.3 * upper, 0.3 * lower + 0.7 * upper)
        torque, qd = generator.uniform(-1.0, 1.0, (2, model.n))
        simulation.reset(q)
        simulation.brakes_engaged = False
        simulation._data.qvel[:] = qd
        pushed = torque
        for link in model.tip_links:
            wrench = generator.uniform(-1.0, 1.0, 6)
            simulation.push(wrench, link)
            pushed = pushed + wrench @ jacobian(model, q, link)
        simulation.step(torque)
        expected = forward_dynamics(model, q, qd, pushed)
        acceleration = (simulation.velocity - qd) / step
        np.testing.assert_allclose(
            acceleration, expected, rtol=0, atol=1e-6 * np.abs(expected).max()
        )


def test_a_push_names_its_tip_where_there_are_several():
    chain = Chain.from_urdf(public_urdf('baxter.urdf'), tip_link=['left_gripper', 'right_gripper'])
    simulation = ArmSimulation(chain)
    for tip in (None, 'torso'):
        with pytest.raises(InvalidArgument, match="one of 'left_gripper', 'right_gripper'"):
            simulation.push(np.zeros(6), tip)


PAYLOADS = (
    Payload(1.8, (0.02, -0.03, 0.06), np.diag([0.004, 0.006, 0.005]), 'panda_link8'),
    Payload(0.7, (0.1, 0.05, -0.1), np.zeros((3, 3)), 'panda_link3'),
    Payload(40.0, (0.0, 0.0, 0.2), np.zeros((3, 3)), 'panda_link0'),
)


@pytest.mark.parametrize('payloads', [PAYLOADS, PAYLOADS[:1], ()])
def test_payloads_are_carried_as_pinocchio_computes_it(payloads):
    pin = pytest.importorskip('pinocchio')
    urdf = str(public_urdf('panda.urdf'))
    whole = pin.buildModelFromUrdf(urdf)
    fingers = [whole.getJointId(f'panda_finger_joint{i}') for i in (1, 2)]
    model = pin.buildReducedModel(whole, fingers, np.zeros(whole.nq))
    for payload in payloads:
        frame = model.frames[model.getFrameId(payload.link)]
        body = pin.Inertia(payload.mass, np.array(payload.center_of_mass), payload.inertia)
        if frame.parentJoint:
            model.appendBodyToJoint(frame.parentJoint, body, frame.placement)
    generator, step = np.random.default_rng(7), 1e-6
    tau = generator.normal(size=7) * 20.0
    simulation = ArmSimulation.from_urdf(urdf, tip_link='panda_link8', time_step=step)
    q = RobotModel.from_urdf(urdf, tip_link='panda_link8').position_limits.mean(axis=1)
    simulation.reset(q)
    simulation.carry(PAYLOADS)  # they are replaced, not added
    simulation.carry(payloads)
    simulation.step(tau)
    expected = pin.aba(model, model.createData(), q, np.zeros(7), tau)
    np.testing.assert_allclose(simulation.velocity / step, expected, rtol=1e-5, atol=1e-4)


def test_a_payload_that_comes_while_the_arm_moves_changes_neither_position_nor_velocity(panda):
    panda.reset(np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]))
    for _ in range(50):
        panda.step(np.full(7, 3.0))
    before = panda.position, panda.velocity, panda.time
    panda.carry(PAYLOADS)
    np.testing.assert_array_equal(panda.position, before[0])
    np.testing.assert_array_equal(panda.velocity, before[1])
    assert panda.time == before[2] and (panda.velocity != 0.0).all()
    panda.carry(())


def test_an_arm_whose_payload_is_known_holds_still_and_one_whose_is_not_does_not(panda):
    q = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
    model = RobotModel.from_urdf(public_urdf('panda.urdf'), tip_link='panda_link8')
    loaded = model.with_payload(PAYLOADS[0])
    moved = {}
    for known in (loaded, model):
        panda.carry(PAYLOADS[:1])
        panda.reset(q)
        for _ in range(500):
            panda.step(gravity_torque(known, q))
        moved[known is loaded] = np.abs(panda.position - q).max()
    panda.carry(())
    assert moved[True] < 1e-9 and moved[False] > 0.05


def test_no_name_of_the_urdf_is_in_mujocos_model():
    text = robot(
        link('base'),
        link('&lt;worldbody/&gt;', 2.0),
        joint('a&quot;/&gt;', 'continuous', 'base', '&lt;worldbody/&gt;'),
    )
    chain = Chain.from_urdf_text(text)
    simulation = ArmSimulation(chain)
    assert simulation.joint_names == ('a"/>',)
    assert simulation._model.joint(0).name == 'joint0'
    assert simulation._model.body(1).name == 'body0'


@pytest.mark.parametrize('lower, upper', [(-np.inf, 0.5), (0.2, np.inf), (1.0, -1.0), (0.3, 0.3)])
def test_limits_that_bound_one_side_are_stops_and_those_without_room_are_not(lower, upper):
    arm = slider().replace('lower="-1" upper="1"', f'lower="{lower}" upper="{upper}"')
    simulation = ArmSimulation.from_urdf(arm, initial_position=[0.3])
    for _ in range(3000):
        simulation.step([2.0])
    # 2 N move 2 kg by 4.5 m in 3 s.
    expected = upper if (lower, upper) == (-np.inf, 0.5) else 0.3 + 4.5
    assert simulation.position[0] == pytest.approx(expected, abs=0.01)


def test_joints_off_the_chain_are_welded_where_the_model_locks_them():
    arm = robot(
        link('base'),
        link('arm', 2.0),
        link('flange'),
        link('left', 0.5),
        link('right', 0.5),
        joint('shoulder', 'continuous', 'base', 'arm', '<axis xyz="0 1 0"/>'),
        joint('bolt', 'fixed', 'arm', 'flange'),
        joint('finger', 'prismatic', 'arm', 'left', '<axis xyz="1 0 0"/>'),
        joint(
            'twin',
            'prismatic',
            'arm',
            'right',
            '<axis xyz="1 0 0"/><mimic joint="finger" multiplier="-1" offset="0.3"/>',
        ),
    )
    simulation = ArmSimulation.from_urdf(
        arm, tip_link='flange', gravity=(0, 0, -10), time_step=1e-5
    )
    assert simulation.joint_names == ('shoulder',)
    # The twin stands 0.3 m off: gravity turns the arm about y by 0.5 kg * 10 m/s² * 0.3 m.
    inertia = 2 * 0.1**2 + 0.5 * 0.1**2 + 0.5 * (0.1**2 + 0.3**2) + 3 * 0.02
    simulation.step([0.0])
    acceleration = simulation.velocity[0] / simulation.time_step
    assert acceleration == pytest.approx(0.5 * 10 * 0.3 / inertia, rel=1e-9)


def test_gravity_is_in_the_axes_of_the_base_link():
    lying = robot(
        link('floor'),
        link('base'),
        link('arm', 2.0),
        joint('mount', 'fixed', 'floor', 'base', '<origin xyz="0 0 0" rpy="0 1.57 0"/>'),
        joint(
            'lift',
            'prismatic',
            'base',
            'arm',
            '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" velocity="9"/>',
        ),
    )
    for gravity, along in (((0.0, 0.0, -9.81), 1.0), (None, np.cos(1.57))):
        simulation = ArmSimulation.from_urdf(lying, base_link='base', gravity=gravity)
        simulation.step([0.0])
        assert simulation.velocity[0] == pytest.approx(-9.81 * along * simulation.time_step)


def test_joint_without_axis_turns_about_x():
    arm = robot(link('base'), link('arm', 2.0), joint('shoulder', 'continuous', 'base', 'arm'))
    np.testing.assert_array_equal(ArmSimulation.from_urdf(arm)._model.jnt_axis, [[1, 0, 0]])


def test_a_torque_that_is_none_leaves_the_arm_where_it_was(panda):
    panda.reset(np.zeros(7))
    with pytest.raises(InvalidArgument):
        panda.step(np.zeros(6))
    with pytest.raises(NonFiniteValue):
        panda.step([0, 0, 0, np.nan, 0, 0, 0])
    assert panda.brakes_engaged
    assert panda.time == 0


@pytest.mark.parametrize('time_step', [0.0, -0.001, np.nan, np.inf, 1.001, 1e6])
def test_time_step_must_be_positive_and_at_most_a_second(time_step):
    with pytest.raises(InvalidArgument, match='time_step'):
        ArmSimulation.from_urdf(slider(), time_step=time_step)


@pytest.mark.parametrize('time_step', [1e-3, 0.01, 1.0])
def test_physics_take_a_long_time_step_in_parts_of_a_quarter_of_a_millisecond(time_step):
    simulation = ArmSimulation.from_urdf(slider(), time_step=time_step)
    for _ in range(round(1.0 / time_step)):
        simulation.step([1.0])  # on 2 kg
    assert simulation.time == pytest.approx(1.0, rel=1e-9)
    assert simulation.velocity[0] == pytest.approx(0.5, rel=1e-9)
    # Half a part times the velocity is MuJoCo's error.
    assert simulation.position[0] == pytest.approx(0.25 + 0.5 * 0.125e-3, rel=1e-9)


def test_without_mujoco_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(NoBackend, match='pip install mujoco'):
        ArmSimulation.from_urdf(slider())


def test_the_law_is_the_nodes_whose_friction_is_smooth_at_rest():
    chain = Chain.from_urdf_text(slider('<dynamics damping="3" friction="0.5"/>'))
    time = np.linspace(0.0, 1.0, 201)
    q, qd, qdd = (0.002 * f[:, None] for f in (-np.cos(time), np.sin(time), np.cos(time)))
    did = simulated_motion(
        ArmSimulation(chain, time_step=0.005),
        RobotModel.from_chain(chain),
        MotionSamples(time, q, qd, qdd),
        'feedforward',
    )
    # Two kilograms on a horizontal rail; 0.01 m/s is the node's parameter friction_velocity. A
    # torque is that of the middle of its time step.
    mean, middle = np.diff(qd, axis=0) / 0.005, 0.5 * (qd[1:] + qd[:-1])
    expected = 2.0 * mean + 3.0 * middle + 0.5 * np.tanh(middle / 0.01)
    np.testing.assert_allclose(did.torque[:-1], expected, atol=1e-9)


def test_without_friction_a_torque_that_is_held_for_a_step_ends_at_the_velocity_of_the_motion():
    chain = Chain.from_urdf_text(slider())
    time = np.linspace(0.0, 1.0, 201)
    q, qd, qdd = (
        (0.1 * f)[:, None]
        for f in (1.0 - np.cos(9 * time), 9 * np.sin(9 * time), 81 * np.cos(9 * time))
    )
    did = simulated_motion(
        ArmSimulation(chain, time_step=0.005),
        RobotModel.from_chain(chain),
        MotionSamples(time, q, qd, qdd),
        'feedforward',
        effort_limits=False,
    )
    np.testing.assert_allclose(did.velocity, qd, atol=1e-9)


def test_a_joint_that_turns_without_end_takes_the_shorter_way_as_under_the_node():
    chain = Chain.from_urdf_text(
        robot(
            link('base'),
            link('wheel', 2.0),
            joint('axle', 'continuous', 'base', 'wheel', '<axis xyz="0 0 1"/>'),
        )
    )
    wanted = np.array([[0.0], [2 * np.pi + 0.1]])
    still = np.zeros((2, 1))
    did = simulated_motion(
        ArmSimulation(chain, time_step=0.001),
        RobotModel.from_chain(chain),
        MotionSamples(np.array([0.0, 0.001]), wanted, still, still),
    )
    # 0.01 kg m² and the gain 100 1/s² on an error of 0.1 rad, not of a turn more.
    assert did.torque[1, 0] == pytest.approx(0.01 * 100 * 0.1, rel=1e-9)


def pushed(distance, limit):
    """Return a carriage of 2 kg, and a motion that asks of it ``distance`` [m] in 1 s."""
    text = slider().replace('effort="9"', f'effort="{limit}"')
    time = np.linspace(0.0, 1.0, 101)[:, None]
    s = distance * (3 * time**2 - 2 * time**3)
    motion = MotionSamples(
        time[:, 0], s, 6 * distance * (time - time**2), distance * (6 - 12 * time)
    )
    return Chain.from_urdf_text(text), RobotModel.from_urdf(text), motion


@pytest.mark.longer
def test_torques_stay_within_the_effort_limits_unless_they_are_ignored():
    # 2 kg times the largest acceleration, 6 x 0.5 m/s², are 6 N: more than 4 N.
    chain, model, motion = pushed(0.5, 4)
    did = simulated_motion(ArmSimulation(chain), model, motion)
    assert np.abs(did.torque).max() == 4.0
    ignored = simulated_motion(ArmSimulation(chain), model, motion, effort_limits=False)
    assert np.abs(ignored.torque).max() == pytest.approx(6.0, rel=0.02)
    unlimited = replace(model, effort_limits=np.array([0.0]))
    without = simulated_motion(ArmSimulation(chain), unlimited, motion)
    np.testing.assert_array_equal(without.torque, ignored.torque)


@pytest.mark.slow
def test_open_loop_that_runs_away_is_stopped_and_explained():
    # Upside down, a pendulum on feedforward alone falls off the equilibrium as exp(t sqrt(3g/2l)).
    text = slider().replace('prismatic', 'revolute').replace('"1 0 0"', '"0 1 0"')
    text = text.replace('lower="-1" upper="1"', 'lower="-9" upper="9"')
    chain, model = Chain.from_urdf_text(text), RobotModel.from_urdf(text)
    time = np.linspace(0.0, 5.0, 101)
    still = np.zeros((101, 1))
    motion = MotionSamples(time, still, still, still)
    simulation = ArmSimulation(chain)
    wrong = replace(model, gravity=np.array([0.1, 0.0, -9.81]))
    with pytest.raises(NoSolution, match='open loop') as caught:
        simulated_motion(simulation, wrong, motion, 'feedforward')
    assert "'rail'" in str(caught.value)
    assert 'computed_torque' in caught.value.allowed
    assert 0.5 < simulation.time < 5.0
    simulated_motion(simulation, wrong, motion, 'computed_torque')
    simulated_motion(simulation, wrong, motion, 'free')


@pytest.mark.parametrize('torque', [1e20, 1e300])
def test_absurd_torque_leaves_the_arm_where_it_was_and_held(torque):
    simulation = ArmSimulation(Chain.from_urdf_text(slider()), initial_position=[0.3])
    for _ in range(100):
        simulation.step([0.1])
    position, time = simulation.position, simulation.time
    assert position[0] > 0.3
    with pytest.raises(NoSolution, match='torque'):
        simulation.step([torque])
    assert simulation.position == pytest.approx(position, abs=0.0)
    assert simulation.time == time
    assert simulation.brakes_engaged
    simulation.step([0.0])
    assert simulation.position == pytest.approx(position, abs=1e-6)


def test_numbers_that_are_no_arms_are_stopped_under_any_law():
    chain, model, motion = pushed(0.5, 1e9)
    with pytest.raises(NoSolution, match='time step'):
        simulated_motion(ArmSimulation(chain, time_step=0.05), model, motion, kp=1e5, kd=2e3)


def test_an_arm_without_any_mass_is_refused_in_one_line():
    text = (
        slider()
        .replace('mass value="2.0"', 'mass value="0"')
        .replace('0.02', '0')
        .replace('izz="0.01"', 'izz="0"')
    )
    with pytest.raises(NoSolution, match='no link that moves has a mass'):
        ArmSimulation.from_urdf(text)
