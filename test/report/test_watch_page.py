# SPDX-License-Identifier: Apache-2.0
"""The live page in a browser: it shows what it is told, and asks for nothing else."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from browser import FAULTS, chromium
from robots import public_urdf

from robodyn_ros import RobotModel, forward_kinematics
from robodyn_ros.report.watch_page import JOINT_NUMBERS, PARTS, live_frame, watch_page

pytest.importorskip('websockets', reason='websockets is not installed: pip install websockets')

from robodyn_ros.monitoring.live_server import LiveServer

HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope='module')
def model() -> RobotModel:
    return RobotModel.from_urdf(
        public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'
    )


def told(model, q, external=0.1, **changes):
    numbers = {name: 0.5 * (k + 1) for k, (name, _, _) in enumerate(PARTS)}
    numbers |= {'position': q, 'total': [10.0, -20.0, 3.0, -4.0, 0.5, 0.6, 0.0]}
    numbers |= {'external_torque': external}
    joints = [np.full(model.n, numbers[name], dtype=float) for name in JOINT_NUMBERS]
    words = {'contact': False, 'link': '', 'mode': 'computed_torque', **changes}
    return live_frame(
        json.dumps(words).encode(), [each.tobytes() for each in joints], np.array([20.0, 0.0, 5.0])
    )


def test_names_of_a_description_are_escaped_and_there_is_no_other_resource(model):
    text = watch_page(model, title=HOSTILE)
    assert HOSTILE not in text and '&lt;img' in text
    assert 'http:' not in text.replace('http://www.w3.org', '').replace("'http:", '')
    assert text.count("'sha256-") == text.count('<script>') == 2


def until(page, frames):
    """Wait until so many frames were drawn; the page's policy forbids what Playwright waits by."""
    deadline = time.monotonic() + 20.0
    while int(page.evaluate('document.body.dataset.frames || 0')) <= frames:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(('width', 'height'), [(390, 844), (1440, 900)])
def test_a_browser_shows_pose_torques_force_and_contact(model, width, height, tmp_path):
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.6, 0.8])
    frame = {'sent': told(model, q)}
    server = LiveServer(watch_page(model, np.full(7, 2.0)), lambda: frame['sent'])
    messages: list[str] = []
    try:
        with chromium() as browser:
            page = browser.new_page(viewport={'width': width, 'height': height})
            page.on('console', lambda message: messages.append(message.text))
            page.on('pageerror', lambda error: messages.append(str(error)))
            began = time.monotonic()
            page.goto(server.address)
            until(page, 3)
            assert time.monotonic() - began < 10.0
            paint = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
            print(f'first paint after {paint:.0f} ms')
            assert paint < 5000.0  # the goal is 1 s; a loaded machine may take longer
            tip = json.loads(page.eval_on_selector('#in-space', 'x => x.dataset.tip'))
            np.testing.assert_allclose(tip, forward_kinematics(model, q)[:3, 3], atol=1e-4)
            torques = page.eval_on_selector_all(
                '#live .row:not(.head) .torque', 'all => all.map(x => x.textContent)'
            )
            assert torques[:2] == ['10.0', '\u221220.0']
            assert page.evaluate(FAULTS) == []
            assert 'no contact' in page.inner_text('#facts')
            assert '20.6 N' in page.inner_text('#facts')
            page.screenshot(path=tmp_path / f'{width}.png')
            # A contact, a residual beyond its band, and a name that would be markup.
            frame['sent'] = told(model, q, contact=True, link=HOSTILE, external=[5.0] + [0.0] * 6)
            page.wait_for_selector('#in-space.contact')
            assert page.locator('.row.beyond').count() == 1
            assert HOSTILE in page.inner_text('#facts')
            assert page.title() != '1'
            # What is no frame is passed over.
            sound = told(model, q)
            for wrong in (
                'nonsense',
                b'',
                b'\xff' * 100,
                sound[:-1],
                sound[:-8],
                told(model, np.full(7, np.nan)),
            ):
                frame['sent'] = wrong
                time.sleep(0.2)  # frames that are on their way
                count = int(page.evaluate('document.body.dataset.frames'))
                time.sleep(0.2)
                assert int(page.evaluate('document.body.dataset.frames')) == count
            frame['sent'] = sound
            until(page, count + 1)
            assert page.wait_for_selector('#state.good').inner_text().endswith('a second')
        assert messages == []
    finally:
        server.close()
