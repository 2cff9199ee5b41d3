# SPDX-License-Identifier: Apache-2.0
"""
A driver that reports the arm at rest until it is ended, to be killed and paused by tests.

    python test/driver.py RATE NAMES OFFSET STAMP VELOCITY

    python test/driver.py --listen TOPIC

The second form only subscribes. STAMP is now, zero, or a number of seconds that its clock begins
at; VELOCITY is yes or no.
"""

import sys
import time

import rclpy
from builtin_interfaces.msg import Time
from fault_rig import POSITION
from node_rig import ARM
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray


def listen(topic):
    rclpy.init()
    node = rclpy.create_node('listener')
    node.create_subscription(Float64MultiArray, topic, lambda message: None, 10)
    rclpy.spin(node)


def main():
    if sys.argv[1] == '--listen':
        listen(sys.argv[2])
    rate, offset = float(sys.argv[1]), float(sys.argv[3])
    names = sys.argv[2].split(',')
    rclpy.init()
    node = rclpy.create_node('driver')
    publisher = node.create_publisher(JointState, '/joint_states', 10)
    message = JointState(
        name=names,
        position=[POSITION[ARM.index(name)] + offset for name in names],
        velocity=[0.0] * len(names) if sys.argv[5] == 'yes' else [],
    )
    begin = due = time.monotonic()
    while True:
        if sys.argv[4] == 'now':
            message.header.stamp = node.get_clock().now().to_msg()
        elif sys.argv[4] != 'zero':
            elapsed = float(sys.argv[4]) + time.monotonic() - begin
            message.header.stamp = Time(sec=int(elapsed), nanosec=int(elapsed % 1.0 * 1e9))
        publisher.publish(message)
        due = max(due + 1.0 / rate, time.monotonic() - 0.1)
        time.sleep(max(due - time.monotonic(), 0.0))


if __name__ == '__main__':
    main()
