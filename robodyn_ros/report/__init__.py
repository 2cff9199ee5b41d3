# SPDX-License-Identifier: Apache-2.0
"""
Everything that is known about an arm, as one page that needs nothing else.

>>> chain = Chain.from_urdf('arm.urdf')
>>> facts = arm_facts(chain, RobotModel.from_chain(chain))
>>> Path('report.html').write_text(report_page(facts), encoding='utf-8')
"""

from robodyn_ros.report.facts import STEPS, ArmFacts, arm_facts
from robodyn_ros.report.page import SignOff, report_page

__all__ = ['STEPS', 'ArmFacts', 'SignOff', 'arm_facts', 'report_page']
