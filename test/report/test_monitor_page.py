# SPDX-License-Identifier: Apache-2.0
"""The page of an arm's history, in a browser and out of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from browser import FAULTS, chromium, opened
from drawn_motions import motions
from simulated_recordings import TrueArm

from robodyn_ros.commands.monitoring import _words
from robodyn_ros.identification import DriveTerms, identify
from robodyn_ros.monitoring.ageing import condition
from robodyn_ros.report.monitor_page import monitor_page

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope='module')
def found():
    arm = TrueArm.drawn(3, 3)
    return identify(arm.urdf, arm.recording(3, 10.0, rate=100.0), friction=DriveTerms())


def page_of(found, made, **others):
    return monitor_page(found, made, condition(found, made), **others)


def test_it_has_a_chart_for_each_joint_and_the_payload_and_needs_nothing_else(found):
    text = page_of(found, motions(40, wear=1.3, warm_up=0.3))
    assert text.count('<svg') == 4 and '<script' not in text
    assert 'http://' not in text.replace('http://www.w3.org', '') and 'https://' not in text
    assert 'above that of the first motions' in text


def test_what_comes_from_files_is_escaped(found):
    text = page_of(found, motions(3), notes=[HOSTILE], title=HOSTILE)
    assert '<script' not in text and text.count('&lt;script&gt;') == 3


def test_a_stamp_beyond_all_dates_is_none(found):
    made = [replace(each, stamp=1e12) for each in motions(3)]
    assert page_of(found, made).count('<svg') == 4


def test_an_empty_history_is_a_page(found):
    assert 'No change is found before' in page_of(found, [])


@pytest.mark.parametrize('clock', [False, True])
def test_its_verdict_is_that_of_the_command(found, clock):
    made = motions(40, clock=clock)
    text = page_of(found, made)
    assert f'{condition(found, made).verdict}</bdi>' in text.replace('&#39;', "'")


@pytest.mark.parametrize('mass', [0.0, 0.6])
def test_what_the_tip_carries_is_one_text_in_table_finding_and_command(found, mass):
    made = motions(40, mass=mass)
    now = condition(found, made)
    said = '\n'.join(_words(now, made, made))
    tip = re.search('at the tip: (.*) beyond the model', said).group(1)
    assert f'At the tip, beyond the model: {tip}.' in page_of(found, made).replace('\xa0', ' ')
    if mass:
        assert f'{tip} beyond the model' in now.findings[0].message
    else:
        assert tip.startswith('not distinguishable from zero, with a deviation of 0.00')


@pytest.mark.longer
def test_ten_thousand_motions_make_a_page_of_ordinary_size(found):
    few = motions(20)
    many = [replace(few[k % 20], stamp=1.7e9 + 3600.0 * k) for k in range(10_000)]
    text = page_of(found, many)
    assert len(text) < 1_500_000
    assert '2023-11-14 to 2025-01-04' in text


@pytest.mark.slow
@pytest.mark.parametrize('width', [390, 1440])
def test_a_browser_shows_it_without_faults_on_phone_and_desk(found, width, tmp_path):
    made = [replace(each, stamp=1.7e9 + each.stamp) for each in motions(60, wear=1.3, warm_up=0.3)]
    path = tmp_path / 'page.html'
    path.write_text(page_of(found, made, title='an arm'), encoding='utf-8')
    with chromium() as browser, opened(browser, path, width) as page:
        assert page.evaluate(FAULTS) == []
        page.screenshot(path=tmp_path / f'{width}.png', full_page=True)
