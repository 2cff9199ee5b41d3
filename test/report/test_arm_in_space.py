# SPDX-License-Identifier: Apache-2.0
"""The arm that a reader turns: where the script draws it, and which torques it tells."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import opened
from known_arms import known_arm
from lxml import html
from robots import public_urdfs, random_chain, random_tree, two_link_urdf

import robodyn_ros as rd
from robodyn_ros.description.chain import Chain
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.errors import RobodynError
from robodyn_ros.kinematics import forward_kinematics
from robodyn_ros.report import report_page
from robodyn_ros.report.arm_in_space import inertia_ellipsoid, numbers_for_script, script
from robodyn_ros.report.facts import arm_facts, slider_ranges
from robodyn_ros.spatial import inertial_parameters

SCRIPTS = dict(
    re.findall(
        r'^// --- (\w+): .*\n((?:(?!// ).*\n)+)',
        Path(__file__).with_name('arm_in_space.js').read_text(encoding='utf-8'),
        re.MULTILINE,
    )
)
BLUE, MUTED = '#0066a6', '#667079'
# What the script needs of a page.
STAGE = """<script>{spy}</script>
<div id="in-space" style="--orange: #c77700; --muted: #667079; --blue: #0066a6; --red: #c4421a">
<canvas style="width: 480px; height: 400px; --orange: #c77700" {layers}></canvas>
<p class="too-large"><span></span></p><output class="tip"></output>
<input type="checkbox" data-layer="frames"><input type="checkbox" data-layer="torques">
<input type="checkbox" data-layer="ellipsoids" checked>
{rows}</div><script type="application/json" id="arm-numbers">{numbers}</script>
<script>{script}</script>"""
ROW = """<div class="joint"><input type="range" min="-100" max="100" step="any">
<output class="position"></output><output class="torque"></output></div>"""
VIEWS = {  # what is to the right, and what is up
    'along y': ([1, 0, 0], [0, 0, 1]),
    'along −x': ([0, 1, 0], [0, 0, 1]),
    'from above': ([1, 0, 0], [0, 1, 0]),
}


def stage(model, numbers, layers=''):
    """Return a page with the drawing alone."""
    parts = {'spy': SCRIPTS['spy'], 'rows': ROW * model.n, 'numbers': numbers, 'script': script()}
    return STAGE.format(layers=layers, **parts)


def shown_of(page, model, q):
    """Return what a page draws of an arm at a pose: lines, texts, and the view."""
    page.set_content(stage(model, numbers_for_script(model, q), 'data-layers="frames"'))
    found = page.evaluate('drawn')
    return found['lines'], found['texts'], view_of(page)


def view_of(page):
    """Return centre [m] and scale [px/m] of the view."""
    view = json.loads(page.locator('canvas').first.get_attribute('data-view'))
    return np.array(view['middle']), view['scale']


def driven(page, q):
    """Move the sliders, and wait for the drawing."""
    page.evaluate(
        """q => document.querySelectorAll('#in-space input[type=range]').forEach((slider, k) => {
            slider.value = q[k];
            slider.dispatchEvent(new Event('input', { bubbles: true }));
        })""",
        list(q),
    )
    drawn(page)


def drawn(page):
    page.evaluate('() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))')


@pytest.mark.parametrize('width', [390, 1440])
@pytest.mark.parametrize('name', ['jpl_rrp', 'panda'])
def test_tip_is_drawn_where_forward_kinematics_puts_it(name, width, report_of, browser):
    path, _ = report_of(name)
    model = known_arm(name)
    ranges = slider_ranges(model)
    poses = np.random.default_rng(1).uniform(*ranges.T, (5, model.n))
    with opened(browser, path, width) as page:
        for layer in ('frames', 'ellipsoids', 'torques'):
            page.locator(f'[data-layer={layer}]').uncheck()
        size = np.array(page.evaluate(SCRIPTS['size']))
        for q in poses:
            driven(page, q)
            told = page.eval_on_selector('#in-space', 'x => JSON.parse(x.dataset.tip)')
            tip = forward_kinematics(model, q)[:3, 3]
            np.testing.assert_allclose(told, tip, atol=1e-9)
            for view, (right, up) in VIEWS.items():
                page.get_by_role('button', name=view).click()
                drawn(page)
                *at, count = page.evaluate(SCRIPTS['tip'])
                assert count > 20
                middle, scale = view_of(page)
                away = scale * (np.array([right, up]) @ (tip - middle))
                assert np.hypot(*(at - size / 2 - away * [1, -1])) < 2.0
        measured = page.eval_on_selector_all(
            '#in-space .joint', 'all => all.map(x => Number(x.dataset.torque))'
        )
    np.testing.assert_allclose(measured, gravity_torque(model, poses[-1]), atol=1e-9)


def test_tips_of_a_tree_are_drawn_where_forward_kinematics_puts_them(browser):
    text, tips = random_tree(np.random.default_rng(6), 6)
    model = rd.RobotModel.from_urdf(text, tip_link=tips)
    assert len(model.dh.branches) > 2
    q = np.random.default_rng(1).uniform(-1, 1, 6)
    page = browser.new_page()
    _, texts, (middle, scale) = shown_of(page, model, q)
    told = page.eval_on_selector('#in-space', 'x => JSON.parse(x.dataset.tip)')
    measured = page.eval_on_selector_all(
        '#in-space .joint', 'all => all.map(x => Number(x.dataset.torque))'
    )
    page.close()
    expected = [forward_kinematics(model, q, tip)[:3, 3] for tip in tips]
    np.testing.assert_allclose(np.reshape(told, (-1, 3)), expected, atol=1e-9)
    np.testing.assert_allclose(measured, gravity_torque(model, q), atol=1e-9)
    assert set(tips) <= {text for text, *_ in texts}


def test_the_page_of_a_tree_has_one_table_and_a_transform_for_each_tip():
    text, tips = random_tree(np.random.default_rng(5), 4)
    chain = Chain.from_urdf(text, tip_link=tips)
    page = report_page(arm_facts(chain, rd.RobotModel.from_chain(chain)))
    assert 'standard' not in [each.text for each in html.fromstring(page).iter('caption')]
    for tip in tips:
        assert f'to {tip}' in page


def public_arms():
    for path in public_urdfs():
        try:
            yield path.name, rd.RobotModel.from_urdf(path)
        except RobodynError:
            continue  # of several arms, or none


@pytest.mark.parametrize('layers', ['', 'data-layers="masses"'])
def test_no_ellipsoid_and_no_mass_of_a_public_arm_leaves_the_picture(layers, browser):
    page = browser.new_page()
    generator, drawn_arms = np.random.default_rng(5), {}
    for name, model in public_arms():
        ranges = slider_ranges(model)
        middle = ranges.mean(axis=1)
        numbers = numbers_for_script(model, middle)
        page.set_content(stage(model, numbers, layers))
        seen = [page.evaluate(SCRIPTS['orange'])]
        driven(page, generator.uniform(*ranges.T))
        seen.append(page.evaluate(SCRIPTS['orange']))
        for inside, border, left_out in seen:
            assert border == 0, name
            # Mass without an extent is a dot of another colour.
            halves = [x for x in json.loads(numbers)['ellipsoids'] if x and np.any(x['half'])]
            halves = halves if not layers else model.inertial_parameters[:, 9].any()
            assert inside > 50 or left_out or not halves, name
        drawn_arms[name] = left_out
    page.close()
    assert len(drawn_arms) > 20
    assert drawn_arms['ur5_robot.urdf'] == ''


def test_ellipsoids_far_larger_than_the_arm_are_named_and_not_drawn(browser):
    # Of a rod of 1 m on an arm of 1 m, one with half axes of 7 m.
    text = (
        two_link_urdf()
        .replace('izz="0.08333', 'izz="9.08333')
        .replace('iyy="0.08333', 'iyy="9.08333')
    )
    model = rd.RobotModel.from_urdf(text)
    numbers = numbers_for_script(model, np.zeros(2))
    assert json.loads(numbers)['too_large'] == [True, True]
    page = browser.new_page()
    page.set_content(stage(model, numbers))
    assert page.evaluate(SCRIPTS['orange']) == [0, 0, 'q1, q2']
    page.close()


def test_arm_is_turned_with_a_finger_and_with_keys(report_of, browser):
    path, _ = report_of('jpl_rrp')
    with opened(browser, path, 390) as page:
        canvas = page.locator('#in-space canvas')
        canvas.scroll_into_view_if_needed()
        pictures = [canvas.screenshot()]
        box = canvas.bounding_box()
        page.mouse.move(box['x'] + 60, box['y'] + 100)
        page.mouse.down()
        page.mouse.move(box['x'] + 120, box['y'] + 130, steps=3)
        page.mouse.up()
        drawn(page)
        pictures.append(canvas.screenshot())
        canvas.press('ArrowLeft')
        drawn(page)
        pictures.append(canvas.screenshot())
    assert len(set(pictures)) == 3


def test_without_script_the_page_says_why_it_has_no_drawing(report_of, browser):
    path, _ = report_of('jpl_rrp')
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator('canvas:visible').count() == 0
    assert 'JavaScript' in page.inner_text('#arm')
    context.close()


@pytest.mark.parametrize('n', [1, 7, 30])
def test_frames_are_named_apart_within_the_picture_and_of_long_arms_some(n, browser):
    text = random_chain(np.random.default_rng(3), n)
    model = rd.RobotModel.from_urdf(text, tip_link='tip')
    page = browser.new_page()
    _, texts, _ = shown_of(page, model, np.full(n, 0.3))
    page.close()
    named = {text: (x, y, wide) for text, x, y, wide in texts if text[0] in 'xzt'}
    every = {f'{axis}{k}' for axis in 'xz' for k in range(1, n + 1)} | {'tip'}
    some = {'z1', 'z5', 'z10', 'z15', 'z20', 'z25', 'z30', 'tip'}
    assert named.keys() == (some if n == 30 else every)
    for name, (x, y, wide) in named.items():
        assert wide / 2 <= x <= 480 - wide / 2 and 6 <= y <= 394
        for other, (at, high, width) in named.items():
            apart = abs(x - at) >= (wide + width) / 2 or abs(y - high) >= 12
            assert apart or name == other, (name, other)


def test_arcs_turn_about_the_axes_the_way_that_q_grows(browser):
    model = rd.RobotModel.from_urdf('urdf/jpl_rrp.urdf')
    q = np.linspace(0.4, -0.3, 6)
    page = browser.new_page()
    lines, _, _ = shown_of(page, model, q)
    page.close()
    arcs = [
        np.array(points)
        for color, wide, points in lines
        if color == BLUE and abs(wide - 1.1) < 0.01
    ]
    assert len(arcs) == 5  # the third joint slides
    numbers = json.loads(numbers_for_script(model, q))
    azimuth, up = numbers['azimuth'], np.sin(numbers['elevation'])
    ahead = np.cos(numbers['elevation'])
    to_viewer = np.array([ahead * np.sin(azimuth), -ahead * np.cos(azimuth), up])
    frames = frame_transforms(model.dh, np.array(numbers['q']))
    for arc, frame in zip(arcs, frames[[0, 1, 3, 4, 5]], strict=True):
        x, y = (arc - arc.mean(axis=0)).T
        counterclockwise = -(x[:-1] * y[1:] - x[1:] * y[:-1]).sum()  # y is down
        towards = frame[:3, 2] @ to_viewer
        assert abs(towards) > 0.05
        assert np.sign(counterclockwise) == np.sign(towards)


@pytest.mark.parametrize('length', [1e-3, 0.3, 1.0, 40.0])
def test_bar_has_a_round_length_to_scale(length, browser):
    model = rd.RobotModel.from_urdf(two_link_urdf(length=length))
    page = browser.new_page()
    lines, texts, (_, scale) = shown_of(page, model, np.zeros(2))
    page.close()
    bar = next(
        np.array(points)
        for color, _, points in lines
        if color == MUTED and len(points) == 2 and points[0][1] == points[1][1] == 386
    )
    (written,) = [text for text, *_ in texts if text.endswith(' m')]
    metres = float(written.removesuffix(' m'))
    assert f'{metres:e}'[0] in '125'
    assert np.ptp(bar[:, 0]) == pytest.approx(scale * metres)
    assert 480 / 11 < np.ptp(bar[:, 0]) <= 480 / 4


@pytest.mark.parametrize('name', ['panda', 'jpl_rrp', 'ur5'])
def test_arm_fills_its_frame(name, browser):
    model = known_arm(name)
    page = browser.new_page()
    lines, _, _ = shown_of(page, model, np.full(model.n, 0.3))
    page.close()
    links = np.vstack([points for _, wide, points in lines if wide in (7, 3)])
    filled = np.ptp(links, axis=0) / [480, 400]
    assert 0.6 < filled.max() < 0.95


def test_masses_too_far_to_be_drawn_are_named(facts_of):
    text = two_link_urdf().replace('xyz="0.5 0 0"', 'xyz="-40 0 0"', 1)
    numbers = json.loads(numbers_for_script(rd.RobotModel.from_urdf(text), np.zeros(2)))
    assert numbers['far'] == [True, False] and numbers['too_large'] == [True, False]
    page = html.fromstring(report_page(facts_of(text)))
    figure = page.get_element_by_id('masses').find('.//figure')
    assert 'more than three times the arm’s size away: q1.' in figure.text_content()


def test_sliders_go_as_far_as_the_joint_and_never_further_than_can_be_seen():
    text = two_link_urdf().replace(
        '</joint>', '<limit lower="-2" upper="0.5" effort="1" velocity="1"/></joint>', 1
    )
    text = text.replace('type="continuous"', 'type="revolute"', 1)
    np.testing.assert_allclose(
        slider_ranges(rd.RobotModel.from_urdf(text)), [[-2, 0.5], [-np.pi, np.pi]]
    )
    absurd = text.replace('-2', '-999999').replace('0.5"', '999999"')
    np.testing.assert_allclose(slider_ranges(rd.RobotModel.from_urdf(absurd))[0], [-np.pi, np.pi])
    slides = rd.RobotModel.from_urdf(two_link_urdf().replace('continuous', 'prismatic'))
    np.testing.assert_allclose(slider_ranges(slides), [[-1, 1]] * 2)


def test_arm_of_one_joint_without_length_is_as_large_as_its_body_is_far(browser):
    model = rd.RobotModel.from_urdf(two_link_urdf(), tip_link='link1')
    assert 0.1 <= json.loads(numbers_for_script(model, np.zeros(1)))['size'] <= 1.0  # a rod of 1 m
    page = browser.new_page()
    page.set_content(stage(model, numbers_for_script(model, np.zeros(1)), 'data-layers="masses"'))
    inside, border, _ = page.evaluate(SCRIPTS['orange'])
    page.close()
    assert inside > 200 and border == 0


def test_ellipsoid_has_the_body_s_inertia():
    # A solid ellipsoid: Ixx = m / 5 (b² + c²).
    half, mass = np.array([0.1, 0.3, 0.2]), 4.0
    moments = mass / 5 * ((half**2).sum() - half**2)
    row = inertial_parameters(mass, [0.5, 0.0, -0.2], np.diag(moments))
    found = inertia_ellipsoid(row)
    np.testing.assert_allclose(found['center'], [0.5, 0.0, -0.2])
    np.testing.assert_allclose(np.abs(found['half']).sum(axis=0), half, atol=1e-12)
    assert inertia_ellipsoid(np.zeros(10)) is None


@pytest.mark.parametrize('n', [1, 30])
def test_numbers_cannot_end_the_element_that_they_stand_in(n):
    text = random_chain(np.random.default_rng(n), n).replace('"l1"', '"&lt;/script>"')
    model = rd.RobotModel.from_urdf(text, tip_link='tip')
    numbers = numbers_for_script(model, np.zeros(n))
    assert '<' not in numbers and 'script' not in numbers
    assert len(json.loads(numbers)['d']) == n
