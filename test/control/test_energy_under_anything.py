# SPDX-License-Identifier: Apache-2.0
"""Whatever is changed, whatever a driver says and whoever pushes, nothing throws an arm."""

import pytest

pytest.importorskip('mujoco')

from hypothesis import event, given, settings
from hypothesis import strategies as st
from random_sequences import KINDS

few = settings(max_examples=max(1, settings().max_examples // 4))
many = settings(max_examples=10 * settings().max_examples)
kinds = pytest.mark.parametrize('kind', KINDS)
some = pytest.mark.xfail(reason='docs/safety.md says how many of a thousand are beyond it')


def judge(kind, case):
    arm = case.run()
    event(f'followed: {min(arm.followed, 3)}, refused: {min(arm.refused, 3)}')
    assert arm.excess <= 0.0, (
        f'{arm.peak:.3f} J of {arm.planned:.3f} planned and {arm.work:.3f} of others; '
        f'{arm.pipeline.last_fault}'
    )
    if kind == 'good drivers':
        assert arm.refused == 0
    if kind in ('good drivers', 'changes'):
        assert arm.pipeline.wrong_velocities == []


@pytest.mark.hypothesis
@kinds
@few
@given(data=st.data())
def test_no_sequence_of_events_throws_an_arm(kind, data):
    judge(kind, data.draw(KINDS[kind]))


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize(
    'kind', [kind if kind == 'good drivers' else pytest.param(kind, marks=some) for kind in KINDS]
)
@many
@given(data=st.data())
def test_none_of_a_thousand_sequences_of_events_throws_an_arm(kind, data):
    judge(kind, data.draw(KINDS[kind]))
