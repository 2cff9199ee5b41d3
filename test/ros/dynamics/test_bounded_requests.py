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

CUT_OFF = b'\0\1\0\0\xff\xff\xff\x7fabc'


def content(text):
    return bytes(serialize_message(String(data=text)))


# --- the description ---------------------------------------------------------------------------


def test_description_is_the_text_of_the_last_message_and_refused_where_it_is_none():
    topic = DescriptionTopic()
    assert topic.text() is None
    for text in ('<robot name="ä"/>', '<robot name="b"/>'):
        assert topic.receive(content(text))
        assert not topic.receive(content(text))
        assert topic.text() == text
    for garbage, words in (
        (bytes(LARGEST_MESSAGE + 1), f'at most {LARGEST_MESSAGE}'),
        *((each, 'std_msgs/String') for each in (b'', b'\0\1', b'\xff' * 50, CUT_OFF)),
    ):
        assert topic.receive(garbage)
        with pytest.raises(UnreadableSource, match=f'{len(garbage)} bytes.*{words}'):
            topic.text()
    topic.receive(content('<robot/>'))
    assert topic.text() == '<robot/>'


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
def test_as_many_parameters_as_there_are_can_be_set_at_once_and_no_more(node):
    assert len(PARAMETERS) <= MOST_ENTRIES
    gains = [Parameter('gain', value=float(i)).to_parameter_msg() for i in range(MOST_ENTRIES)]
    assert all(result.successful for result in set_parameters(node, gains)[0])
    assert node.get_parameter('gain').value == MOST_ENTRIES - 1.0
    unknown = Parameter('gain', value=2.0).to_parameter_msg()
    unknown.value.type = 200
    for given, words in (
        ([*gains, gains[0]], f'{MOST_ENTRIES + 1} parameters; allowed: at most {MOST_ENTRIES}'),
        ([unknown], 'parameter type 200'),
    ):
        results, together = set_parameters(node, given)
        assert len(results) == len(given)
        assert not any(each.successful for each in (*results, together))
        assert words in results[0].reason and words in together.reason
        assert node.get_parameter('gain').value == MOST_ENTRIES - 1.0
    services = BoundedParameterService(node)
    for kind, callback, field in (
        (GetParameters, services._get_parameters_callback, 'values'),
        (GetParameterTypes, services._get_parameter_types_callback, 'types'),
        (DescribeParameters, services._describe_parameters_callback, 'descriptors'),
    ):
        for asked, answers in ((['gain'] * (MOST_ENTRIES + 1), 0), (['gain'] * 3, 3)):
            response = callback(kind.Request(names=asked), kind.Response())
            assert len(getattr(response, field)) == answers


def set_parameters(node, given):
    """Return the answers to a request to set parameters, one by one and all together."""
    services = BoundedParameterService(node)
    one_by_one = services._set_parameters_callback(
        SetParameters.Request(parameters=given), SetParameters.Response()
    )
    together = services._set_parameters_atomically_callback(
        SetParametersAtomically.Request(parameters=given), SetParametersAtomically.Response()
    )
    return one_by_one.results, together.result
