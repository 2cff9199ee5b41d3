# SPDX-License-Identifier: Apache-2.0
"""What is too large to be taken in beside a control cycle is refused by its size."""

from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

import domains
import rclpy
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from robodyn_ros.control.settings import PARAMETERS
from robodyn_ros.errors import UnreadableSource
from robodyn_ros.ros.dynamics.description_topic import (
    LARGEST_MESSAGE,
    DescriptionTopic,
    take_description,
)
from robodyn_ros.ros.rclpy_workarounds import MOST_ENTRIES, BoundedParameterService


def content(text):
    return bytes(serialize_message(String(data=text)))


# --- the description ---------------------------------------------------------------------------


def test_description_is_the_text_of_the_last_message():
    topic = DescriptionTopic()
    assert topic.text() is None
    assert topic.receive(content('<robot name="ä"/>'))
    assert topic.text() == '<robot name="ä"/>'
    assert not topic.receive(content('<robot name="ä"/>'))
    assert topic.receive(content('<robot name="b"/>'))
    assert topic.text() == '<robot name="b"/>'


def test_description_that_is_too_large_is_refused_by_its_size_until_another_comes():
    topic = DescriptionTopic()
    large = bytes(LARGEST_MESSAGE + 1)
    assert topic.receive(large)
    with pytest.raises(UnreadableSource, match=f'{len(large)} bytes.*at most {LARGEST_MESSAGE}'):
        topic.text()
    topic.receive(content('<robot/>'))
    assert topic.text() == '<robot/>'


@pytest.mark.parametrize('garbage', [b'', b'\0\1', b'\xff' * 50, b'\0\1\0\0\xff\xff\xff\x7fabc'])
def test_description_that_is_no_text_is_refused(garbage):
    topic = DescriptionTopic()
    topic.receive(garbage)
    with pytest.raises(UnreadableSource, match=f'{len(garbage)} bytes.*std_msgs/String'):
        topic.text()


class Silent:
    """A node that keeps the callback of its subscription, and what it would log."""

    def __init__(self):
        self.log = []

    def create_subscription(self, kind, topic, callback, qos, raw):
        self.receive = callback

    def get_logger(self):
        return SimpleNamespace(info=print, warning=self.log.append, error=self.log.append)


def test_first_description_that_can_be_taken_is_taken_and_those_after_it_are_not():
    node, taken = Silent(), []

    def take(text):
        if text == 'bad':
            raise UnreadableSource('URDF', 'bad', 'a good one')
        taken.append(text)

    take_description(node, take)
    node.receive(bytes(LARGEST_MESSAGE + 1))
    node.receive(content('bad'))
    assert taken == [] and ['at most', 'a good one'] == [
        next(words for words in ('at most', 'a good one') if words in line) for line in node.log
    ]
    for text in ('good', 'good', 'other'):
        node.receive(content(text))
    assert taken == ['good']
    assert node.log[2:] == ['robot_description was replaced: ignored']


# --- parameters --------------------------------------------------------------------------------


@pytest.fixture
def node():
    domain = domains.claim()
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    result = rclpy.create_node('bounded', context=context, start_parameter_services=False)
    result.declare_parameter('gain', 1.0)
    yield result
    result.destroy_node()
    rclpy.shutdown(context=context)
    domains.release(domain)


@pytest.mark.ros
def test_as_many_parameters_as_there_are_can_be_set_at_once(node):
    assert len(PARAMETERS) <= MOST_ENTRIES
    services = BoundedParameterService(node)
    gains = [Parameter('gain', value=float(i)).to_parameter_msg() for i in range(MOST_ENTRIES)]
    request, response = SetParameters.Request(parameters=gains), SetParameters.Response()
    results = services._set_parameters_callback(request, response).results
    assert [result.successful for result in results] == [True] * MOST_ENTRIES
    assert node.get_parameter('gain').value == MOST_ENTRIES - 1.0


@pytest.mark.ros
def test_parameter_of_a_type_that_does_not_exist_is_refused(node):
    services, gain = BoundedParameterService(node), Parameter('gain', value=2.0)
    unknown = gain.to_parameter_msg()
    unknown.value.type = 200
    request = SetParameters.Request(parameters=[gain.to_parameter_msg(), unknown])
    results = services._set_parameters_callback(request, SetParameters.Response()).results
    assert len(results) == 2 and 'parameter type 200' in results[1].reason
    request = SetParametersAtomically.Request(parameters=request.parameters)
    response = SetParametersAtomically.Response()
    assert not services._set_parameters_atomically_callback(request, response).result.successful
    assert node.get_parameter('gain').value == 1.0


@pytest.mark.ros
def test_request_for_too_many_parameters_is_refused_as_a_whole(node):
    services = BoundedParameterService(node)
    gains = [Parameter('gain', value=2.0).to_parameter_msg()] * (MOST_ENTRIES + 1)
    names = ['gain'] * (MOST_ENTRIES + 1)
    words = f'{MOST_ENTRIES + 1} parameters; allowed: at most {MOST_ENTRIES}'
    results = services._set_parameters_callback(
        SetParameters.Request(parameters=gains), SetParameters.Response()
    ).results
    assert len(results) == len(gains)
    assert not any(result.successful for result in results) and words in results[0].reason
    result = services._set_parameters_atomically_callback(
        SetParametersAtomically.Request(parameters=gains), SetParametersAtomically.Response()
    ).result
    assert not result.successful and words in result.reason
    assert node.get_parameter('gain').value == 1.0
    for kind, callback, field in (
        (GetParameters, services._get_parameters_callback, 'values'),
        (GetParameterTypes, services._get_parameter_types_callback, 'types'),
        (DescribeParameters, services._describe_parameters_callback, 'descriptors'),
    ):
        for asked, answers in ((names, 0), (names[:3], 3)):
            response = callback(kind.Request(names=asked), kind.Response())
            assert len(getattr(response, field)) == answers
