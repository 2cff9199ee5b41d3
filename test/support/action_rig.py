# SPDX-License-Identifier: Apache-2.0
"""The action in front of a controller like the real one, and a client; needs control_msgs."""

from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from feedforward_rig import MODEL, POSITION, Rig, trajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse

SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)
# control_msgs 5, Jazzy's, has none.
HAS_INDEX = 'index' in FollowJointTrajectory.Feedback.get_fields_and_field_types()


class Controller:
    """One goal at a time, and a new one aborts the old, as joint_trajectory_controller has it."""

    def __init__(self, node):
        self.goals, self.results, self.accepts = [], {}, True
        self.active = None
        self.server = ActionServer(
            node,
            FollowJointTrajectory,
            'joint_trajectory_controller/follow_joint_trajectory',
            self.end,
            goal_callback=self.on_goal,
            handle_accepted_callback=self.on_accepted,
            cancel_callback=self.on_cancel,
        )

    def close(self):
        if self.server is not None:
            self.server.destroy()
        self.server = None

    def on_goal(self, goal):
        self.goals.append(goal)
        return GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT

    def on_accepted(self, handle):
        if self.active is not None:
            self.finish(ABORTED, -1, 'preempted')
        self.active = handle

    def on_cancel(self, handle):
        if self.active is None or handle.goal_id != self.active.goal_id:
            return CancelResponse.REJECT
        self.finish(CANCELED)
        return CancelResponse.ACCEPT

    def finish(self, status, code=0, text=''):
        handle, self.active = self.active, None
        self.results[bytes(handle.goal_id.uuid)] = (status, code, text)
        handle.execute()

    def end(self, handle):
        status, code, text = self.results[bytes(handle.goal_id.uuid)]
        if status == CANCELED and handle.is_cancel_requested:
            handle.canceled()
        else:
            {SUCCEEDED: handle.succeed, ABORTED: handle.abort, CANCELED: handle.abort}[status]()
        return FollowJointTrajectory.Result(error_code=code, error_string=text)

    def tell(self, index):
        feedback = FollowJointTrajectory.Feedback()
        if HAS_INDEX:
            feedback.index = index
        feedback.joint_names = list(MODEL.joint_names)
        feedback.error.positions = [0.25] * 7
        self.active.publish_feedback(feedback)


class ActionRig(Rig):
    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.controller = Controller(self.tester)
        self.client = ActionClient(
            self.tester, FollowJointTrajectory, 'feedforward/follow_joint_trajectory'
        )
        self.feedback = []
        self.until(self.client.server_is_ready)
        self.until(self.node._front.client.server_is_ready)
        self.drive()

    def close(self):
        if hasattr(self, 'client'):
            self.client.destroy()
            self.controller.close()
        super().close()

    def goal(self, message=None):
        goal = FollowJointTrajectory.Goal(trajectory=message or trajectory(POSITION + 0.05))
        goal.goal_tolerance = [JointTolerance(name='panda_joint1', position=0.125)]
        goal.goal_time_tolerance.sec = 3
        return goal

    def ask(self, message=None):
        """Return the client's handle of a goal."""
        return self.answer(
            self.client.send_goal_async(self.goal(message), feedback_callback=self.feedback.append)
        )

    def answer(self, future):
        self.until(future.done)
        return future.result()
