# SPDX-License-Identifier: Apache-2.0
"""More than anybody asks of a node in earnest: all kinds of requests, by the hundred, at once."""

import os
import random
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from fault_rig import POSITION, fault
from geometry_msgs.msg import Vector3
from node_rig import MARK, processes_with
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter as NodeParameter
from std_msgs.msg import String
from std_srvs.srv import SetBool

from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import ComputeInverseDynamics, GetMassMatrix, SetGravity, SetPayload

pytestmark = [pytest.mark.slow, pytest.mark.ros]

SOAK = 180.0  # [s]
WARM_UP = 60.0  # after which nothing may grow any more [s]
GROWTH = 15 * 2**20  # of all processes together, that allocators may take on [bytes]
SPARE = 4  # open files and threads that may be open for a moment
MODES = ('gravity_compensation', 'computed_torque', 'feedforward')


@pytest.fixture
def rig(own):
    return own


def parameters(**values):
    """Return a request to set parameters."""
    return SetParameters.Request(
        parameters=[
            Parameter(
                name=name.replace('__', '.'),
                value=NodeParameter(name, value=value).get_parameter_value()
                if value is not None
                else ParameterValue(),
            )
            for name, value in values.items()
        ]
    )


def drawn_parameters(chance):
    """Return a request with parameters that are allowed, or make no sense."""
    return chance.choice(
        [
            lambda: parameters(mode=chance.choice(MODES)),
            lambda: parameters(kp=[chance.uniform(0.0, 400.0)], kd=[chance.uniform(5.0, 40.0)]),
            lambda: parameters(ramp_time=chance.uniform(0.05, 0.5)),
            lambda: parameters(damping=chance.uniform(0.5, 10.0)),
            lambda: parameters(terms__coriolis=chance.random() < 0.5),
            lambda: parameters(effort_limit_scale=chance.uniform(0.5, 1.0)),
            lambda: parameters(soft_limit_width=chance.uniform(0.0, 0.1)),
            lambda: parameters(kp=[-1.0]),
            lambda: parameters(mode='\x1b[31m'),
            lambda: parameters(ramp_time=None),
            lambda: parameters(torque_rate_limit=[float('nan')]),
            lambda: parameters(**{f'no_such_{chance.random()}': 1.0}),
        ]
    )()


def sane(rig, kind, name, request):
    """Have a request answered, whatever else was asked before it."""
    return rig.call(kind, name, request, rig.send_home)


@fault(
    'a thousand requests for parameters at once in motion',
    'Each is answered, or was never accepted; no step, and the last one holds.',
)
def test_storm_of_parameters_causes_no_step(rig):
    rig.launch()
    rig.recover()
    rig.in_motion(seconds=30.0)
    rig.forget()
    chance = random.Random(7)
    client = rig._client(SetParameters, 'set_parameters')
    futures = []
    for _ in range(100):
        futures += [client.call_async(drawn_parameters(chance)) for _ in range(10)]
        rig.send_home()
        rig.spin(0.005)
    rig.until(lambda: sum(future.done() for future in futures) > 0, rig.send_home)
    last = parameters(mode='gravity_compensation', kp=[100.0], kd=[20.0], ramp_time=0.1)
    last.parameters += parameters(effort_limit_scale=1.0, soft_limit_width=0.05).parameters
    answer = sane(rig, SetParameters, 'set_parameters', last)
    assert all(result.successful for result in answer.results), answer
    answered = [future.result().results for future in futures if future.done()]
    assert any(result.successful for results in answered for result in results)
    assert any(result.reason for results in answered for result in results)
    rig.recover()
    rig.stream(POSITION, lambda: rig.report.get('mode') == 'gravity_compensation')


def measured(rig):
    """Return memory [bytes], open files and threads of the node and of all that it started."""
    mark = f'{MARK}={rig.environment[MARK]}'.encode()
    drivers = {child.pid for child in rig.children}
    memory = files = threads = 0
    for pid in set(processes_with(mark)) - drivers:
        with suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f'/proc/{pid}/smaps_rollup').read_text().split()
            memory += 1024 * int(words[words.index('Pss:') + 1])
            files += len(os.listdir(f'/proc/{pid}/fd'))
            threads += len(os.listdir(f'/proc/{pid}/task'))
    return np.array([memory, files, threads])


class Everything:
    """
    Draws what happens next to a node, of all that others can do to it.

    Parameters
    ----------
    rig : FaultRig
    """

    def __init__(self, rig):
        self.rig = rig
        self.chance = random.Random(11)
        self.futures = []
        self.services = {
            name: rig._client(kind, name)
            for kind, name in (
                (SetParameters, 'set_parameters'),
                (SetPayload, 'set_payload'),
                (SetGravity, 'set_gravity'),
                (GetMassMatrix, 'get_mass_matrix'),
                (ComputeInverseDynamics, 'compute_inverse_dynamics'),
                (SetBool, 'enable'),
            )
        }

    def one(self):
        """Do one thing."""
        chance, rig = self.chance, self.rig
        kind = chance.choices(
            ['follow', 'cancel', 'nonsense', 'parameters', 'load', 'question', 'states', 'robot'],
            [4, 1, 2, 4, 1, 3, 3, 0.2],
        )[0]
        if kind == 'follow':
            target = np.array(POSITION) + chance.uniform(-0.2, 0.2)
            rig.follow([target], [chance.uniform(1.5, 4.0)])
        elif kind == 'cancel':
            rig.follow([], [])
        elif kind == 'nonsense':
            rig.follow([[chance.choice([np.nan, 1e300, 99.0])]], [1.0], names=['\x1b[2J\n'])
        elif kind == 'parameters':
            self.ask('set_parameters', drawn_parameters(chance))
        elif kind == 'load':
            mass = chance.choice([0.0, 0.2, 0.5, -1.0, np.nan, 1e6])
            self.ask('set_payload', SetPayload.Request(payload=Payload(mass=mass)))
            request = SetGravity.Request()
            request.gravity.vector = Vector3(z=chance.choice([-9.81, -9.7, np.inf]))
            self.ask('set_gravity', request)
        elif kind == 'question':
            self.ask('get_mass_matrix', GetMassMatrix.Request())
            self.ask('compute_inverse_dynamics', ComputeInverseDynamics.Request())
        elif kind == 'states':
            self.states()
        else:
            rig.description.publish(String(data='<robot' * chance.choice([1, 1000])))

    def states(self):
        """Publish joint states that nobody should."""
        chance, send = self.chance, self.rig.send
        what = chance.randrange(5)
        if what == 0:
            send([np.nan] * 7)
        elif what == 1:
            send([0.0] * 50, names=[f'\x1b{chance.random()}' for _ in range(50)])
        elif what == 2:
            send(POSITION[:3])
        elif what == 3:
            send(POSITION, velocity=[np.inf] * 7)
        else:
            self.rig.spin(chance.uniform(0.0, 0.1))

    def ask(self, name, request):
        """Ask, and do not wait; what was answered is forgotten."""
        self.futures = [future for future in self.futures if not future.done()][-100:]
        self.futures.append(self.services[name].call_async(request))


@fault(
    'three minutes of everything at once',
    'Trajectories, parameters, loads, requests, malformed states and descriptions, some '
    'hundred a second: no step, and after a minute neither memory nor open files nor '
    'threads grow.',
)
def test_three_minutes_of_everything_leave_nothing_behind(rig):
    rig.launch()
    rig.recover()
    driver = rig.driver(rate=200.0)
    everything = Everything(rig)
    begin, before = time.monotonic(), None
    while (elapsed := time.monotonic() - begin) < SOAK:
        for _ in range(10):
            everything.one()
        rig.spin(0.1)
        if len(rig.record) > 1000:
            rig.check_stream()
        if before is None and elapsed > WARM_UP:
            rig.spin(1.0)
            before = measured(rig)
    rig.spin(1.0)
    after = measured(rig)
    print('bytes, files, threads before', before, 'after', after)
    assert rig.process.poll() is None and driver.poll() is None
    assert after[0] - before[0] < GROWTH
    assert (after[1:] - before[1:] <= SPARE).all()
    last = parameters(mode='gravity_compensation', ramp_time=0.1, effort_limit_scale=1.0)
    answer = sane(rig, SetParameters, 'set_parameters', last)
    assert all(result.successful for result in answer.results), answer
    assert sane(rig, SetBool, 'enable', SetBool.Request(data=True)).success
    rig.until(lambda: rig.report.get('reference') == 'none', rig.send_home)
    rig.until_commanded()
    assert rig.end() == 0
    assert 'Traceback' not in rig.log
