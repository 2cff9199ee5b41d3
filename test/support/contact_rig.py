# SPDX-License-Identifier: Apache-2.0
"""A node that observes an arm in MuJoCo over DDS."""

from __future__ import annotations

from xml.etree import ElementTree

from geometry_msgs.msg import WrenchStamped
from lockstep_rig import LEAD, LockstepRig, stamp_at
from node_rig import ARM
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState

from robodyn_interfaces.msg import Contact

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
LATCHED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ContactRig(LockstepRig):
    """A node that holds an arm in MuJoCo, with whoever listens to what the outside does."""

    def __init__(self, log_path):
        super().__init__(log_path)
        self.external, self.wrenches, self.contacts = [], [], []
        self.push = self.node.create_publisher(WrenchStamped, '/tip_wrench', 10)

    def listen(self):
        self._keep(JointState, 'external_torques', self.external)
        self._keep(WrenchStamped, 'tip_wrench', self.wrenches)
        self.listen_to_contacts()

    def listen_to_contacts(self):
        self.node.create_subscription(
            Contact, '/dynamics_node/contact', self.contacts.append, LATCHED
        )

    def hold(self, robot, position=POSITION, names=ARM, noise=None, **parameters):
        """Hold a position, in MuJoCo, until half a second has passed there."""
        self.start(**robot, **{'mode': 'computed_torque', **parameters})
        self.start_simulator(**robot, initial_position=position, **(noise or {}))
        self.until(lambda: self.push.get_subscription_count() > 0)
        assert self.transition('activate')
        self.run_until(0.3)
        self.follow([position], [0.2], names)
        self.run_until(0.8)

    def pushed(self, force, frame='', time=None, moment=(0.0, 0.0, 0.0)):
        """Exert a wrench [N, N m] from a simulated time [s] on, or from soon on; return that."""
        time = self.time + LEAD if time is None else time
        message = WrenchStamped()
        message.header.frame_id = frame
        message.header.stamp = stamp_at(time)
        for vector, given in ((message.wrench.force, force), (message.wrench.torque, moment)):
            vector.x, vector.y, vector.z = map(float, given)
        self.push.publish(message)
        return time


def set_friction(joint, coulomb, viscous):
    """Give a joint of a URDF friction, in place of what it has."""
    for given in joint.findall('dynamics'):
        joint.remove(given)
    values = {'friction': str(coulomb), 'damping': str(viscous)}
    ElementTree.SubElement(joint, 'dynamics', values)
