# SPDX-License-Identifier: Apache-2.0
"""A configured dynamics_node to ask, and the same robot in Pinocchio."""

from pathlib import Path

from geometry_msgs.msg import Vector3, Vector3Stamped
from node_rig import NodeRig
from oracles import PinocchioArm, random_states

from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import SetGravity, SetPayload
from robodyn_ros import RobotModel

ROOT = Path(__file__).resolve().parents[2]


class Arm:
    """A configured node for one robot, and the same robot in Pinocchio."""

    def __init__(self, rig, urdf, base_link, tip_link):
        self.rig, self.tip_link = rig, tip_link
        self.text = Path(urdf).read_text(encoding='utf-8')
        self.model = RobotModel.from_urdf(urdf, base_link=base_link, tip_link=tip_link)
        rig.start(
            urdf_file=urdf,
            base_link=base_link,
            tip_link=tip_link,
            autostart='false',
            state_timeout=0.5,
        )
        assert rig.transition('configure')

    def ask(self, kind, **fields):
        name = ''.join('_' + c.lower() if c.isupper() else c for c in kind.__name__)[1:]
        name = name.replace('d_h_', 'dh_')
        return self.rig.call(kind, name, kind.Request(**fields))

    def carry(self, **fields):
        return self.ask(SetPayload, payload=Payload(**fields))

    def feel(self, x, y, z, frame=''):
        message = Vector3Stamped(vector=Vector3(x=x, y=y, z=z))
        message.header.frame_id = frame
        return self.ask(SetGravity, gravity=message)

    def pinocchio(self, text=None, gravity=None):
        model = self.model if gravity is None else self.model.with_gravity(gravity)
        return PinocchioArm.of(text or self.text, model)

    def states(self, count=3, seed=8):
        return zip(*random_states(self.model, count, seed))


def configured(request, rig, name):
    """Return one of the arms, on a node that is started, or configured anew."""
    if name == 'panda':
        return Arm(rig, request.getfixturevalue('panda_urdf'), 'panda_link0', 'panda_link8')
    return Arm(rig, str(ROOT / 'urdf' / 'jpl_rrp.urdf'), 'base', 'hand')


def started(request, tmp_path_factory, name):
    rig = NodeRig(tmp_path_factory.mktemp(name) / 'node.log')
    try:
        yield configured(request, rig, name)
    finally:
        rig.close()
