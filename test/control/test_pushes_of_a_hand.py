# SPDX-License-Identifier: Apache-2.0
"""A real UR10e that a hand pushes, and its motions without contact."""

from __future__ import annotations

from pathlib import Path

import pytest
from contact import FREE, PUSHED, PUSHES, Pushes

RECORDINGS = Path(__file__).resolve().parents[3] / 'shared' / 'recordings'
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f'no recordings in {RECORDINGS}'),
]


@pytest.fixture(scope='module')
def pushes() -> Pushes:
    return Pushes(RECORDINGS)


def test_every_push_is_found(pushes):
    found = pushes.contacts(PUSHED, pushes.thresholds())
    for begin, end in PUSHES:
        assert any(begin <= each.time <= end for each in found), (begin, found)


def test_motions_without_contact_raise_at_most_one_alarm_a_minute(pushes):
    thresholds = pushes.thresholds()
    alarms = [each for name in FREE for each in pushes.contacts(name, thresholds)]
    assert len(alarms) <= pushes.free_minutes, alarms
