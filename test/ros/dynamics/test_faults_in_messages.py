# SPDX-License-Identifier: Apache-2.0
"""Malformed messages of every kind reach a node that is at work; one process takes them all."""

import itertools

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from builtin_interfaces.msg import Duration, Time
from fault_rig import EFFORT_LIMITS, POSITION, case, fault, rig_in
from node_rig import ARM
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

pytestmark = [pytest.mark.slow, pytest.mark.ros]

NAN, INF = float('nan'), float('inf')
IGNORED = 'Ignored with a warning.'
REFUSED = 'Refused with its reason; the previous reference continues.'
CDR = serialize_message(JointState(name=ARM, position=POSITION))


@pytest.fixture(scope='module')
def running(tmp_path_factory, panda_urdf):
    rig = rig_in(tmp_path_factory.mktemp('messages'), panda_urdf)
    rig.launch(mode='computed_torque')
    rig.bring_up(POSITION)
    yield rig
    rig.close()


@pytest.fixture
def rig(running):
    """The one node: at work before a fault, at work again after it, never restarted."""
    with running.surviving():
        yield running


def joint_state(names=ARM, position=POSITION, velocity=(), stamp=None, rig=None):
    message = JointState(name=list(names), position=list(position), velocity=list(velocity))
    message.header.stamp = stamp or rig.node.get_clock().now().to_msg()
    return message


# --- joint states ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'changes',
    [
        case('fewer positions than names', IGNORED, {'position': POSITION[:5]}),
        case('more positions than names', IGNORED, {'position': [*POSITION, 0.0]}),
        case('names without positions', IGNORED, {'position': []}),
        case('positions without names', IGNORED, {'names': []}),
        case('fewer velocities than names', IGNORED, {'velocity': [0.0]}),
        case('joint named twice', IGNORED, {'names': [*ARM[:6], ARM[0]]}),
    ],
)
def test_malformed_joint_state_is_ignored_and_counted(rig, changes):
    count = int(rig.report['malformed_joint_states'])

    def both():
        rig.joint_states.publish(joint_state(rig=rig, **changes))
        rig.send_home()

    rig.until(lambda: int(rig.report['malformed_joint_states']) >= count + 10, both)
    assert rig.report['last_malformed']


@pytest.mark.parametrize(
    'changes',
    [
        case('empty joint state', 'It changes nothing.', {'names': [], 'position': []}),
        case(
            'joints of another robot',
            'They are ignored.',
            {'names': ['gripper', 'wheel'], 'position': [1.0, NAN]},
        ),
        case(
            'a joint name of ten thousand characters',
            'It is ignored.',
            {'names': ['x' * 10000], 'position': [1.0]},
        ),
        case(
            'a thousand joints, those of the arm among them',
            'Joints of the arm are taken by name.',
            {
                'names': [*(f'other{i}' for i in range(1000)), *ARM],
                'position': [*[NAN] * 1000, *POSITION],
            },
        ),
        case(
            'velocities that are not finite',
            'Replaced by the filtered difference of positions.',
            {'velocity': [NAN, INF, -INF, NAN, NAN, NAN, NAN]},
        ),
    ],
)
def test_odd_joint_state_does_no_harm(rig, changes):
    for _ in range(20):
        rig.joint_states.publish(joint_state(rig=rig, **changes))
        rig.send(POSITION)
        rig.spin(0.005)


@fault('a hundred thousand joints in one message', 'Ignored by its size, before it is parsed.')
def test_joint_state_of_absurd_size_is_ignored_by_its_size(rig):
    message = joint_state([f'other{i}' for i in range(100_000)], [0.0] * 100_000, rig=rig)
    content = serialize_message(message)
    turn = itertools.count()

    def both():
        if next(turn) % 50 == 0:
            rig.joint_states.publish(content)
        rig.send_home()

    rig.until(lambda: f'{len(content)} bytes' in rig.report.get('last_malformed', ''), both)


@fault(
    "a gripper's old stamps and malformed messages",
    'They are ignored, without a warning.',
)
def test_what_another_device_does_wrong_is_not_reported_of_the_arm(rig):
    before, count = len(rig.log), int(rig.report['malformed_joint_states'])
    old = rig.node.get_clock().now().to_msg()
    old.sec -= 86400
    for _ in range(20):
        for position in ([0.1], [0.1, 0.2]):
            rig.joint_states.publish(
                joint_state(names=['gripper'], position=position, stamp=old, rig=rig)
            )
        rig.send(POSITION)
        rig.spin(0.005)
    reports = len(rig.reports)
    rig.stream(POSITION, lambda: len(rig.reports) > reports + 1)
    assert 'joint state ignored' not in rig.log[before:]
    assert 'stamped 8640' not in rig.log[before:]
    assert int(rig.report['malformed_joint_states']) == count


MISSING = 'The joint counts as missing.'


@pytest.mark.parametrize(
    'bad', [case('NaN position', MISSING, NAN), case('infinite position', MISSING, INF)]
)
def test_position_that_is_not_finite_makes_its_joint_stale(rig, bad):
    rig.stream([*POSITION[:6], bad], lambda: rig.report.get('level') == 2)
    assert rig.report['stale_joints'] == ARM[6]


@fault(
    'position of 1e300',
    'Gravity alone, within the limits.',
)
def test_absurd_position_gets_no_absurd_torque(rig):
    for _ in range(20):
        rig.send([*POSITION[:5], 1e300, -1e300])
        rig.spin(0.005)


@fault('velocity of 1e308', 'Unknown: taken from the positions.')
def test_absurd_velocity_gets_no_absurd_torque(rig):
    rig.in_motion()
    count = len(rig.commands)
    for _ in range(20):
        rig.send(POSITION, velocity=[1e308] * 7)
        rig.spin(0.005)
    assert len(rig.commands) > count + 10
    assert 'moves at' not in rig.log
    # The arm stands where the test says, while its reference moves on.
    rig.stream(POSITION, lambda: 'max_following_error' in rig.report['last_fault'])


@fault(
    'joints in a new order in every message',
    'Taken by name; the number of cached layouts is bounded.',
)
def test_changing_order_of_joints_is_understood(rig):
    generator = np.random.default_rng(7)

    def send():
        order = generator.permutation(7)
        rig.send(np.array(POSITION)[order], names=np.array(ARM)[order])

    rig.until(rig.commanded_since(len(rig.commands), 150), doing=send)
    rig.until(lambda: rig.report['level'] == 0, doing=send)


@pytest.mark.parametrize(
    'stamp',
    [
        case('zero stamps', 'Receipt times them.', Time()),
        case('negative stamps', 'They count as none: receipt times them.', Time(sec=-5)),
        case(
            'stamps in the future',
            'Receipt measures staleness; they make nothing younger.',
            Time(sec=2**31 - 1),
        ),
        case(
            'nanoseconds of more than a second',
            'They are added up.',
            Time(sec=2**30, nanosec=2**32 - 1),
        ),
    ],
)
def test_odd_stamps_are_commanded_on(rig, stamp):
    rig.stream(POSITION, rig.commanded_since(len(rig.commands), 20), stamp=stamp)


@fault('stamps of yesterday', 'Stale; the log suggests use_sim_time.')
def test_old_stamps_are_stale(rig):
    old = rig.node.get_clock().now().to_msg()
    old.sec -= 86400
    rig.stream(POSITION, lambda: rig.report.get('level') == 2, stamp=old)
    rig.stream(POSITION, lambda: 'use_sim_time' in rig.log, stamp=old)


@fault('states that come 0.7 s late', 'Stale; the log does not suggest use_sim_time.')
def test_late_states_are_not_blamed_on_the_clock(rig):
    before = len(rig.log)

    def late():
        now = rig.node.get_clock().now().nanoseconds - 7 * 10**8
        rig.send(POSITION, stamp=Time(sec=now // 10**9, nanosec=now % 10**9))

    rig.until(lambda: 'joint states are stamped 0.7' in rig.log[before:], late)
    rig.until(lambda: rig.report.get('level') == 2, late)
    assert 'use_sim_time' not in rig.log[before:]


@fault(
    'stamps that run backward',
    'Late messages are ignored; a clock set back is accepted, and the reference is dropped.',
)
def test_backward_stamps_cause_no_jump(rig):
    rig.in_motion()
    now = rig.node.get_clock().now().nanoseconds
    for i in range(100):
        stamp = now - (i % 7) * 10**7 + (10**9 if i == 50 else 0)
        rig.send(POSITION, stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9))
        rig.spin(0.003)


@fault(
    'the same stamp again and again',
    'The reference is dropped; log and diagnostics report a stopped clock.',
)
def test_repeated_stamp_drops_the_reference(rig):
    rig.in_motion()
    drops = int(rig.report['dropped_references'])
    # Ahead of the clock, so that it does not grow old.
    ahead = rig.node.get_clock().now().to_msg()
    ahead.sec += 30
    rig.stream(POSITION, lambda: int(rig.report['dropped_references']) > drops, stamp=ahead)
    rig.stream(POSITION, lambda: rig.report['reference'] == 'none', stamp=ahead)
    assert 'stamps' in rig.report['last_drop']
    rig.until(lambda: f'reference dropped: {rig.report["last_drop"]}' in rig.log)


@pytest.mark.parametrize(
    'content',
    [
        case('no bytes at all', 'It is dropped.', b''),
        case('bytes that end too soon', 'Ignored with a warning.', CDR[:90]),
        case('bytes that are no message', 'Ignored with a warning.', b'\xff' * 200),
        case(
            'lengths that claim gigabytes',
            'Ignored with a warning.',
            CDR[:4] + b'\0' * 8 + b'\xff\xff\xff\x7f' * 8,
        ),
    ],
)
def test_garbage_on_the_wire_is_survived(rig, content):
    for _ in range(5):
        rig.joint_states.publish(content)
        rig.trajectories.publish(content)
        rig.send(POSITION)
        rig.spin(0.01)
    if content:
        refused = 'a sensor_msgs/JointState'
        rig.stream(POSITION, lambda: refused in rig.report.get('last_malformed', ''))


@fault('another message type on our topic', 'The middleware does not connect it.')
def test_other_type_on_the_topic_is_not_connected(rig):
    stranger = rig.stranger()
    strings = stranger.create_publisher(String, '/joint_states', 10)
    arrays = stranger.create_publisher(Float64MultiArray, '/dynamics_node/joint_trajectory', 10)
    for _ in range(20):
        strings.publish(String(data='{}'))
        arrays.publish(Float64MultiArray(data=[1.0]))
        rig.send(POSITION)
        rig.spin(0.005)


# --- trajectories ------------------------------------------------------------------------------

WANTED = (np.array(POSITION) + 0.1).tolist()
FAR = (np.array(POSITION) + 0.6).tolist()


def trajectory(names=ARM, seconds=(1.0,), positions=None, **fields):
    points = [
        JointTrajectoryPoint(positions=WANTED if positions is None else positions, **fields)
        for _ in seconds
    ]
    for point, time in zip(points, seconds):
        point.time_from_start = Duration(sec=int(time // 1), nanosec=round(1e9 * (time % 1)))
    return JointTrajectory(joint_names=list(names), points=points)


WRONG_TRAJECTORIES = {
    'trajectory for an unknown joint': (trajectory(names=[*ARM[:6], 'wrist']), 'wrist'),
    'trajectory with a joint twice': (trajectory(names=[*ARM[:6], ARM[0]]), 'each joint once'),
    'trajectory without joints': (trajectory(names=[]), 'at least one joint'),
    'trajectory point of the wrong length': (trajectory(positions=[0.1]), '1 values'),
    'trajectory point without positions': (trajectory(positions=[]), '0 values'),
    'trajectory with NaN': (trajectory(positions=[NAN] * 7), 'finite'),
    'trajectory velocity that is infinite': (trajectory(velocities=[INF] * 7), 'finite'),
    'trajectory times that stand still': (trajectory(seconds=[1.0, 1.0]), 'later'),
    'trajectory time before the start': (trajectory(seconds=[-1.0]), 'negative'),
    'trajectory accelerations without velocities': (
        trajectory(accelerations=[0.0] * 7),
        'without velocities',
    ),
    'trajectory outside the position limits': (trajectory(positions=[9.0] * 7), 'position limits'),
    'trajectory that jumps': (trajectory(seconds=[0.001], positions=FAR), 'max_reference_step'),
    'trajectory with numbers of 1e308': (trajectory(velocities=[1e308] * 7), 'position limits'),
}


@pytest.mark.parametrize(
    'message, reason', [case(name, REFUSED, *each) for name, each in WRONG_TRAJECTORIES.items()]
)
def test_malformed_trajectory_is_refused_while_another_is_followed(rig, message, reason):
    rig.in_motion(seconds=60.0)
    before = len(rig.log)
    rig.trajectories.publish(message)
    rig.stream(POSITION, lambda: 'trajectory rejected' in rig.log[before:])
    rig.until(lambda: reason in rig.log[before:])
    assert len(rig.states[-1].reference_position) == 7


@fault('trajectory that ended long ago', REFUSED)
def test_trajectory_of_the_past_is_refused(rig):
    message = trajectory()
    message.header.stamp = rig.node.get_clock().now().to_msg()
    message.header.stamp.sec -= 1000
    rig.trajectories.publish(message)
    rig.stream(POSITION, lambda: 'ago' in rig.report.get('last_rejection', ''))


@fault('trajectory for the year 2038', 'It waits where the arm is; an empty one cancels it.')
def test_trajectory_of_the_far_future_waits_and_can_be_cancelled(rig):
    message = trajectory()
    message.header.stamp.sec = 2**31 - 1
    rig.trajectories.publish(message)
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'waiting')
    rig.trajectories.publish(JointTrajectory())
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'holding')


@fault('feedforward efforts of 1e300', 'They are saturated gradually: the rate limit holds.')
def test_huge_feedforward_is_clipped(rig):
    rig.trajectories.publish(trajectory(seconds=[60.0], effort=[1e300] * 7))
    rig.stream(POSITION, lambda: np.allclose(rig.commands[-1].data, EFFORT_LIMITS))
    rig.stream(POSITION, lambda: int(rig.report['effort_limited_cycles']) > 0)
    rig.trajectories.publish(JointTrajectory())
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'holding')


def trajectory_of(count):
    """Return a trajectory that holds the arm where it is for a time, in so many points."""
    return trajectory(seconds=0.01 * np.arange(1, count + 1), positions=POSITION)


@fault(
    'trajectory of a thousand points',
    'Accepted: read and planned within some 10 ms.',
)
def test_long_trajectory_is_taken(rig):
    rig.trajectories.publish(trajectory_of(1000))
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'moving')


@pytest.fixture(scope='module')
def long_messages():
    # A second's work in which no state could be sent: before the node waits for any.
    return {count: serialize_message(trajectory_of(count)) for count in (2000, 50_000)}


@pytest.mark.parametrize(
    'count, reason',
    [
        case('trajectory of two thousand points in motion', REFUSED, 2000, 'at most 1000'),
        case('trajectory of 5 MB in motion', REFUSED, 50_000, 'bytes'),
    ],
)
def test_trajectory_that_is_too_long_is_refused_by_its_size(long_messages, rig, count, reason):
    message = long_messages[count]
    rig.in_motion(seconds=60.0)
    rig.trajectories.publish(message)
    rig.stream(POSITION, lambda: reason in rig.report.get('last_rejection', ''))
    rig.until(lambda: 'trajectory rejected' in rig.log)
    assert rig.report['reference'] == 'moving', rig.log


@fault(
    'a thousand parameters in one request',
    'Refused as a whole, with the allowed number.',
)
def test_request_of_a_thousand_parameters_is_refused(rig):
    rig.in_motion(seconds=60.0)
    gain = Parameter('kp', value=[100.0]).to_parameter_msg()
    request = SetParameters.Request(parameters=[gain] * 1000)
    results = rig.call(SetParameters, 'set_parameters', request, rig.send_home).results
    assert len(results) == 1000 and 'at most 60' in results[0].reason
    assert len(rig.states[-1].reference_position) == 7


@fault(
    'three hundred trajectories at once',
    'Each replaces the one before without a jump; the newest ten are kept.',
)
def test_flood_of_trajectories_causes_no_jump(rig):
    for i in range(300):
        position = np.array(POSITION) + 0.05 * np.sin(i)
        rig.trajectories.publish(trajectory(positions=position.tolist()))
        if i % 10 == 0:
            rig.send(POSITION)
            rig.spin(0.002)
    rig.stream(POSITION, lambda: rig.report.get('reference') in ('moving', 'holding'))


@fault(
    'two hundred single points as a stream, then silence',
    'The last one is held.',
)
def test_stream_of_points_that_stops_is_held(rig):
    for i in range(200):
        position = np.array(POSITION) + 0.0002 * i
        rig.trajectories.publish(trajectory(seconds=[0.0], positions=position.tolist()))
        rig.send(POSITION)
        rig.spin(0.003)
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'holding')
