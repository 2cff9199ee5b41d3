# SPDX-License-Identifier: Apache-2.0
"""
A driver that reports the arm until it is ended, to be killed and paused by tests.

The arm is at rest, but for joint 4 where that is asked for.

    python test/driver.py RATE NAMES OFFSET STAMP VELOCITY

    python test/driver.py --listen TOPIC

The second form only subscribes. STAMP is now, zero, or a number of seconds that its clock begins
at. VELOCITY is yes, no, or how many times its velocity joint 4 reports: then it swings.
"""

import math
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
        velocity=[] if sys.argv[5] == 'no' else [0.0] * len(names),
    )
    swing, rate_of_swing = 0.1, 3.0  # rad, rad/s
    begin = due = time.monotonic()
    while True:
        if sys.argv[4] == 'now':
            message.header.stamp = node.get_clock().now().to_msg()
        elif sys.argv[4] != 'zero':
            elapsed = float(sys.argv[4]) + time.monotonic() - begin
            message.header.stamp = Time(sec=int(elapsed), nanosec=int(elapsed % 1.0 * 1e9))
        if sys.argv[5] not in ('yes', 'no'):
            angle = rate_of_swing * (time.monotonic() - begin)
            message.position[3] = POSITION[3] + swing * math.sin(angle)
            speed = swing * rate_of_swing * math.cos(angle)
            message.velocity[3] = float(sys.argv[5]) * speed
        publisher.publish(message)
        due = max(due + 1.0 / rate, time.monotonic() - 0.1)
        time.sleep(max(due - time.monotonic(), 0.0))


if __name__ == '__main__':
    main()
