# SPDX-License-Identifier: Apache-2.0
"""
The report on an arm, as one self-contained page.

>>> chain = Chain.from_urdf('arm.urdf')
>>> facts = arm_facts(chain, RobotModel.from_chain(chain))
>>> Path('report.html').write_text(report_page(facts), encoding='utf-8')
"""

from robodyn_ros.report.facts import STEPS, ArmFacts, arm_facts
from robodyn_ros.report.page import SignOff, report_page

__all__ = ['STEPS', 'ArmFacts', 'SignOff', 'arm_facts', 'report_page']
