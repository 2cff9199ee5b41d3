# SPDX-License-Identifier: Apache-2.0
"""`robodyn report`: complete, readable on every screen, and proof against hostile names."""

import base64
import copy
import hashlib
import platform
import re
from pathlib import Path

import numpy as np
import pytest
from browser import FAULTS, opened
from command_line import output_of
from lxml import html
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.motions import MotionSamples
from robodyn_ros.report import STEPS, SignOff, report_page
from robodyn_ros.report.charts import call_time_chart, torque_chart
from robodyn_ros.report.facts import CallTimes
from robodyn_ros.report.text import (
    coefficients,
    indexed,
    number,
    percent,
    quantity,
    shortened,
    visible,
)

SECTIONS = (
    'arm dh masses structure parameters coupling ranges torque simplified call-times provenance'
).split()
WIDTHS = (390, 820, 1440)
HOSTILE = (
    '</title><script>alert(1)</script>',
    '"><img src=x onerror=alert(2)>',
    "it's {{ 7 * 7 }} {% raw %} & $x_1$",
    'line\nbreak\ttab',
    '関節 \u202e desrever \u0301',
)


def section_of(facts, name):
    """Return a section of the page that is made of an arm's facts."""
    return html.fromstring(report_page(facts)).get_element_by_id(name)


def sections_of(page):
    """Return the names of the sections of a page in a browser."""
    return page.eval_on_selector_all('section', 'all => all.map(x => x.id)')


def figures_of(page):
    """Return the boxes of a page's figures in a browser."""
    return page.eval_on_selector_all(
        'figure svg', 'all => all.map(x => x.getBoundingClientRect().toJSON())'
    )


@pytest.mark.parametrize('name', ['panda', 'ur5', 'jpl_rrp'])
def test_report_has_every_section_and_figure_and_nothing_overflows(name, report_of, browser):
    path, summary = report_of(name)
    n = len(summary['joint_names'])
    assert summary['notes'] == {}
    for width in WIDTHS:
        with opened(browser, path, width) as page:
            assert sections_of(page) == SECTIONS
            labels = page.eval_on_selector_all(
                'figure svg', "all => all.map(x => x.getAttribute('aria-label'))"
            )
            # Coupling and three maps, inertia, gravity, n torques, simplified, call times.
            assert len(labels) >= n + 8
            assert page.locator('canvas').count() == 2
            assert len([x for x in labels if x.startswith('Coupling of q')]) == 3
            assert all(box['width'] > 150 and box['height'] > 50 for box in figures_of(page))
            assert page.evaluate(FAULTS) == []


def limited(lower, upper, effort):
    """Return the limits of a joint, before the end of its element."""
    limit = f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="1e9"/>'
    return (
        two_link_urdf().replace('continuous', 'revolute').replace('</joint>', f'{limit}</joint>')
    )


ODD = {
    'no masses': two_link_urdf(m1=0.0, m2=0.0),
    'absurd limits': limited(-999999, 999999, 1e14),
    'one joint': two_link_urdf().replace('joint2" type="continuous"', 'joint2" type="fixed"'),
    'endless slides': two_link_urdf().replace('continuous', 'prismatic'),
    'heavy as a mountain': two_link_urdf(m1=1e11, m2=1e-9),
    'a grain of dust': two_link_urdf(length=1e-6),
}


@pytest.mark.parametrize('name', ODD)
def test_odd_arms_have_a_page_at_every_width_in_light_and_in_dark(
    name, tmp_path, facts_of, browser
):
    path = tmp_path / 'report.html'
    path.write_text(report_page(facts_of(ODD[name], title=name)), encoding='utf-8')
    for width in WIDTHS:
        for scheme in ('light', 'dark'):
            with opened(browser, path, width, scheme) as page:
                assert page.evaluate(FAULTS) == []
                assert sections_of(page) == SECTIONS
                canvas = page.locator('#in-space canvas').bounding_box()
                assert canvas['width'] > 0.8 * min(width - 40, 620)


@pytest.mark.slow
def test_long_arms_have_a_table_of_the_strongest_coupling_alone(facts_of, monkeypatch):
    monkeypatch.setattr('robodyn_ros.report.page._MOST_COLUMNS', 1)
    facts = facts_of(two_link_urdf())
    section = section_of(facts, 'ranges')
    (table,) = (x for x in section.iter('table') if 'takes most torque' in x.text_content())
    rows = [[cell.text_content() for cell in row] for row in table.iter('tr')][1:]
    largest = facts.ratios.coupling
    assert [row[1] for row in rows] == ['q2 joint2', 'q1 joint1']
    assert [float(row[2]) for row in rows] == pytest.approx(
        [largest[0][1], largest[1][0]], rel=0.05
    )


def test_long_formulas_are_cut_after_their_beginning_where_they_would_fill_pages():
    few, many = ['a + b'] * 3, ['a', 'b + ' * 10_000]
    assert shortened(few) == few
    short, long = shortened(many)
    assert short == 'a'
    assert len(long) < 250 and long.endswith('… (40000 characters in all)')


@pytest.mark.slow
def test_absurd_limits_are_taken_through_one_turn(facts_of):
    # Over two million radians a map would be noise.
    facts = facts_of(ODD['absurd limits'])
    (found,) = facts.coupling.maps
    np.testing.assert_allclose(found.first[[0, -1]], [-np.pi, np.pi])
    text = section_of(facts, 'ranges').text_content()
    assert 'one turn is looked at, from −π to π, here and for the coupling: q1 joint1, q2' in text


def test_printed_page_has_legends_folded_parts_and_light_colours(report_of, browser, tmp_path):
    path, _ = report_of('jpl_rrp')
    with opened(browser, path, 760, 'dark') as page:
        on_screen = page.locator('figure svg').count()
        page.emulate_media(media='print', color_scheme='dark')
        assert _brightness(page.evaluate('getComputedStyle(document.body).backgroundColor')) > 250
        swatches = page.eval_on_selector_all(
            '.legend i',
            """all => all.map(x => [getComputedStyle(x).printColorAdjust,
                getComputedStyle(x).backgroundColor, x.getBoundingClientRect().width])""",
        )
        assert len({color for _, color, _ in swatches}) == len(swatches) >= 4
        assert all(adjust == 'exact' and wide > 5 for adjust, _, wide in swatches)
        folded = page.eval_on_selector_all(
            'details', 'all => all.map(x => x.lastElementChild.getBoundingClientRect().height)'
        )
        assert len(folded) == 5 and min(folded[:1] + folded[2:4]) > 10
        # Formulas of gravity are read on a screen, and fill pages of paper.
        assert page.locator('.formulas').count() == 2
        assert not any(each.is_visible() for each in page.locator('.formulas').all())
        assert page.locator('.on-paper').is_visible()
        boxes = figures_of(page)
        assert len(boxes) == on_screen
        assert all(box['width'] > 100 and box['height'] > 30 for box in boxes)
        assert (
            page.evaluate("getComputedStyle(document.querySelector('h2')).breakAfter") == 'avoid'
        )
        assert page.locator('#in-space canvas').is_visible()
        assert not page.locator('#in-space .sliders').is_visible()
        assert page.locator('#provenance .signature').is_visible()
        assert 'SHA-256' in page.locator('#provenance').inner_text()
        assert (
            page.evaluate("getComputedStyle(document.querySelector('#provenance')).breakInside")
            == 'avoid'
        )
        assert page.evaluate('document.documentElement.scrollWidth') <= 760


def test_arm_is_drawn_anew_in_light_colours_for_paper(report_of, browser):
    path, _ = report_of('jpl_rrp')
    state = """() => [getComputedStyle(document.body).color,
        ...[...document.querySelectorAll('canvas')].map(x => x.width)]"""
    with opened(browser, path, 1440, 'dark') as page:
        before = page.evaluate(state)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        ink, *widths = page.evaluate(state)
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        after = page.evaluate(state)
    assert _brightness(before[0]) > 200 > 60 > _brightness(ink)
    assert min(widths) >= 600  # pixels enough for a printer
    assert after == before


@pytest.mark.slow
def test_report_of_the_puma_splits_simplifies_and_maps(facts_of):
    facts = facts_of(Path('urdf/puma560.urdf').read_text(encoding='utf-8'))
    page = html.fromstring(report_page(facts))
    assert facts.split['D_12'].dominant == 'translational'
    assert len(facts.split['D_11'].values) == len(facts.torques.motion.time)
    assert facts.structure.total == 88
    # Joints whose simplified torque is further off are named.
    (note,) = page.get_element_by_id('simplified').find_class('note')
    off = facts.simplified_torque_error > facts.simplified.error
    assert off.any() and not off.all()
    for k, beyond in enumerate(off):
        assert (f'q{k + 1} joint{k + 1} (' in note.text_content()) == beyond
    # Coupling maps share one scale.
    largest = [float(each.values.max()) for each in facts.coupling.maps]
    assert len(largest) >= 2 and max(largest) > 1.05 * min(largest)
    ticks = []
    for k in range(len(largest)):
        (bar,) = page.xpath(f'.//*[@id="coupling-map-{k}-axes_2"]')
        ticks.append([x.text for x in bar.iter('text')])
    assert all(each == ticks[0] for each in ticks)


def test_report_is_dark_where_the_browser_asks_for_it(report_of, browser):
    path, _ = report_of('jpl_rrp')
    colors = {}
    for scheme in ('light', 'dark'):
        with opened(browser, path, 390, scheme) as page:
            colors[scheme] = page.evaluate(
                """() => [document.body, document.querySelector('#ranges svg text')].map(
                    (x, k) => getComputedStyle(x)[k ? 'fill' : 'backgroundColor'])"""
            )
    (paper, ink), (dark_paper, dark_ink) = colors['light'], colors['dark']
    assert _brightness(paper) > 250 > 60 > _brightness(ink)
    assert _brightness(dark_paper) < 40 < 200 < _brightness(dark_ink)


def _brightness(color):
    return np.mean([float(x) for x in re.findall(r'[\d.]+', color)[:3]])


@pytest.mark.slow
def test_report_states_what_was_computed(report_of):
    path, summary = report_of('jpl_rrp')
    text = html.parse(str(path)).getroot().text_content()
    arm = rd.RobotModel.from_urdf('urdf/jpl_rrp.urdf')
    base = rd.base_parameters(arm)
    assert summary['minimal_parameters'] == base.count
    assert f'Of 60 inertial parameters the torques depend on {base.count} combinations' in text
    for expression in base.expressions:
        assert expression.text('symbols').partition(' = ')[2] in text
    assert 'g3 = 63.5658 cos(q2)' in text
    # Tourassis and Neuman 1985, Table 2; Bejczy 1974, (111): what joint 3 feels of joint 1, in m.
    assert summary['independent_coefficients'] == 97
    assert 'Of 97 independent coefficients of the model, 60 are not zero everywhere' in text
    assert 'without rotor inertia, which a URDF does not have' in text


@pytest.mark.slow
def test_report_takes_rotors_along(tmp_path):
    # Bejczy 1974, (72): D11 varies 4.36 times with the input inertias, eleven times without.
    rotors = {'joint1': 0.9533, 'joint2': 2.1933, 'joint3': 0.7818}
    options = [x for name, i in rotors.items() for x in ('--rotor-inertia', f'{name}={i}')]
    path = tmp_path / 'report.html'
    output_of('report', 'urdf/jpl_rrp.urdf', *options, '-o', path)
    page = html.parse(str(path)).getroot()
    assert 'rotor inertia included' in page.text_content()
    (row,) = (
        each
        for each in page.get_element_by_id('ranges').iter('tr')
        if each.text_content().startswith('q1') and ' to ' in each.text_content()
    )
    relative = float(row.xpath('./td[@data-label="ratio"]')[0].text_content())
    assert relative == pytest.approx(4.36, rel=1e-2)
    told = Path('docs/what_your_arm_can_tell_you.md').read_text(encoding='utf-8')
    (number_told,) = re.findall(r'(\d\.\d+) times\b[^()]*\(Bejczy 1974', told)
    assert float(number_told) == pytest.approx(6.176 / 1.417, abs=5e-3)


def test_names_cannot_break_the_page_or_inject_into_it(tmp_path, facts_of, browser):
    # Written as a program would write it, so that the names arrive as they are.
    urdf = two_link_urdf()
    for old, new in zip(('link1', 'link2', 'joint1', 'joint2', 'base'), HOSTILE, strict=True):
        quoted = new.translate({ord(x): f'&#{ord(x)};' for x in '<>&"\'\n\t'})
        urdf = urdf.replace(f'"{old}"', f'"{quoted}"')
    facts = facts_of(urdf, title=HOSTILE[0])
    assert facts.model.joint_names == HOSTILE[2:4]
    path = tmp_path / 'report.html'
    path.write_text(report_page(facts), encoding='utf-8')
    with opened(browser, path, 390) as page:
        assert page.evaluate(FAULTS) == []
        assert page.eval_on_selector_all('script', 'all => all.length') == 2
        assert page.eval_on_selector_all('img', 'all => all.length') == 0
        numbers = page.inner_text('#arm-numbers')
        assert not [name for name in HOSTILE if name[:5] in numbers]
        assert sections_of(page) == SECTIONS
        text = page.inner_text('body')
    for name in HOSTILE:
        assert re.sub(r'\s', ' ', visible(name)) in re.sub(r'\s', ' ', text)
    assert r'line\nbreak\ttab' in text
    assert r'\u202e' in text


@pytest.mark.slow
def test_page_allows_no_script_and_names_no_other_place(report_of):
    path, _ = report_of('jpl_rrp')
    text = path.read_text(encoding='utf-8')
    assert "default-src 'none'" in text
    # Its own script, by its digest, and the numbers that it draws.
    (digest,) = re.findall("script-src 'sha256-([^']+)'", text)
    data, code = html.fromstring(text).xpath('.//script')
    assert data.get('type') == 'application/json'
    assert base64.b64encode(hashlib.sha256(code.text.encode()).digest()).decode() == digest
    assert set(re.findall(r'https?://[^"\' )<]+', text)) <= {
        'http://www.w3.org/2000/svg',
        'http://www.w3.org/1999/xlink',
    }


@pytest.mark.longer
def test_what_cannot_be_found_is_left_out_and_says_why(facts_of):
    steps = []
    facts = facts_of(ODD['endless slides'], on_step=steps.append)
    assert steps == list(STEPS)
    assert set(facts.notes) == {'coupling', 'ranges', 'simplified model', 'ratios'}
    page = html.fromstring(report_page(facts))
    assert [x.get('id') for x in page.iter('section')] == SECTIONS
    assert "position limits of joint 'joint1'" in page.get_element_by_id('ranges').text_content()
    (verdict,) = page.find_class('verdict')
    assert 'Not computed: coupling, ranges, simplified model, ratios.' in verdict.text_content()


def written(page):
    """Return the text of a page, without figures and what others wrote."""
    page = copy.deepcopy(page)
    for each in page.xpath('//bdi | //svg | //script | //style'):
        each.drop_tree()
    return page.text_content()


@pytest.mark.slow
@pytest.mark.parametrize('name', ['jpl_rrp', 'panda'])
def test_mass_matrix_and_gravity_have_one_letter_and_indices_are_lowered(name, report_of):
    path, _ = report_of(name)
    page = html.parse(str(path)).getroot()
    assert re.findall(r'[A-Za-z]_\d', written(page)) == []
    assert [x for x in page.xpath('//svg//text/text()') if '_' in x] == []
    assert [x for x in page.xpath('//svg/@aria-label') if '_' in x] == []
    symbols = {
        x.text_content()
        for section in ('torque', 'simplified')
        for x in page.get_element_by_id(section).xpath('.//th[@scope="row"][sub]')
    }
    letters = {re.split(r'\d', x)[0].replace('\u00a0', ' ') for x in symbols}
    assert letters == {'M', 'g', '(C q̇)'}
    assert coefficients('d_1,10 G_2^2 <i>') == 'M<sub>1,10</sub> g<sub>2</sub>² &lt;i&gt;'
    assert indexed('2 d3² mZ10') == '2 d<sub>3</sub>² mZ<sub>10</sub>'


@pytest.mark.slow
def test_no_line_ends_between_a_number_and_its_unit(report_of):
    path, _ = report_of('panda')
    text = written(html.parse(str(path)).getroot())
    units = 'kg m²|kg m|kg|N m|N|rad/s²|rad/s|rad|m/s²|m|s|µs|%'
    assert re.findall(rf'.*\d (?:{units})\b.*', text) == []
    assert re.findall('.*(?:kg|N) m.*', text) == []
    assert quantity(1.5, 'N m') == '1.5\u00a0N\u00a0m'


@pytest.mark.slow
def test_first_page_says_whether_the_description_can_be_used(facts_of):
    sound = Path('urdf/two_link_planar.urdf').read_text()
    for text, said in (
        (sound, 'The description can be used: no warnings.'),
        (two_link_urdf(m2=0.0), 'To be corrected, or accepted, before use: {} warnings.'),
    ):
        facts = facts_of(text)
        warnings = [x.level for x in facts.model.findings].count('warning')
        assert (warnings > 1) == (text != sound)
        (verdict,) = html.fromstring(report_page(facts)).find_class('verdict')
        assert verdict.text_content().startswith(said.format(warnings))
        assert 'whether they are this robot’s was not measured' in verdict.text_content()


def test_robot_and_author_stand_on_the_first_page_or_are_left_to_be_filled_in(
    tmp_path, facts_of, browser
):
    path = tmp_path / 'report.html'
    sign_off = SignOff(robot=HOSTILE[0], serial_number=HOSTILE[1], author='')
    path.write_text(report_page(facts_of(two_link_urdf()), sign_off=sign_off), encoding='utf-8')
    with opened(browser, path, 390) as page:
        assert page.evaluate(FAULTS) == []
        rows = page.locator('header .fields > div')
        shown = [rows.nth(k).is_visible() for k in range(4)]
        assert shown == [True, True, False, False]
        assert page.locator('header .fields').inner_text().split('\n')[1] == HOSTILE[0]
        page.emulate_media(media='print')
        assert [rows.nth(k).is_visible() for k in range(4)] == [True] * 4
        assert page.locator('script').count() == 2 and page.locator('img').count() == 0


@pytest.mark.slow
def test_what_would_say_nothing_of_a_small_arm_is_left_out_with_a_sentence(facts_of):
    # Both axes are along gravity, and no term of M is small.
    facts = facts_of(two_link_urdf())
    page = html.fromstring(report_page(facts))
    ranges = page.get_element_by_id('ranges')
    assert [x.get('aria-label') for x in ranges.xpath('.//figure/svg')][0] == 'Range of inertia'
    assert not ranges.xpath('.//svg[@aria-label="Range of gravity"]')
    assert 'Gravity takes no torque at any joint' in ranges.text_content()
    assert 'of effort limit' not in ranges.text_content()
    simplified = page.get_element_by_id('simplified')
    assert 'none can be dropped within 2\u00a0%' in simplified.text_content()
    assert not simplified.xpath('.//figure | .//table | .//details')


@pytest.mark.longer
def test_massless_links_make_a_report_too(facts_of):
    facts = facts_of(ODD['no masses'])
    page = html.fromstring(report_page(facts))
    (alert,) = page.find_class('alerts')
    assert 'every torque is 0' in alert.text_content()
    # No chart that would be empty; the sections say why.
    assert page.get_element_by_id('torque').find_class('note')
    assert not page.get_element_by_id('torque').xpath('.//figure')
    assert set(facts.notes) == set(STEPS) - {'conversion', 'base parameters', 'compiled code'}


@pytest.mark.longer
def test_torque_that_is_rounding_is_zero(facts_of):
    # The last joint turns a rod along its own axis, which has no inertia about it.
    text = two_link_urdf().replace(
        '<parent link="link1"/><child link="link2"/><axis xyz="0 0 1"/>',
        '<parent link="link1"/><child link="link2"/><axis xyz="1 1e-13 0"/>',
    )
    facts = facts_of(text)
    assert np.abs(facts.torques.total[:, 0]).max() > 1.0
    assert not facts.torques.total[:, 1].any()
    assert facts.simplified_torque_error[1] == 0.0


@pytest.mark.parametrize('width', [761, 820, 901])
def test_names_of_joints_are_not_broken_in_tables(report_of, browser, width):
    path, _ = report_of('ur5')  # of up to 19 letters
    with opened(browser, path, width) as page:
        lines = page.eval_on_selector_all(
            '.wide tbody th bdi', 'all => all.map(x => x.getClientRects().length)'
        )
        assert len(lines) >= 12
        assert set(lines) == {1}
        assert page.evaluate(FAULTS) == []


def test_figures_fill_the_width_of_a_desktop(report_of, browser):
    path, _ = report_of('jpl_rrp')
    with opened(browser, path, 1440) as page:
        reached = page.eval_on_selector_all(
            '.figures',
            """all => all.map(group => {
                const boxes = [...group.children].map(x => x.getBoundingClientRect());
                const first = boxes.filter(box => Math.abs(box.top - boxes[0].top) < 250);
                const right = Math.max(...first.map(box => box.right));
                const whole = group.getBoundingClientRect();
                return (right - whole.left) / whole.width;
            })""",
        )
    assert len(reached) == 3
    assert min(reached) > 0.9


def test_ticks_of_call_times_leave_room_for_each_other():
    # As on a machine so crowded that one call took a tenth of a second.
    times = CallTimes(
        {}, {'compiled mass_matrix': 0.255, 'lagrangian_coefficients': 101_404.0}, '', ''
    )
    figure = html.fromstring(call_time_chart(times, 'a'))
    ticks = [
        (float(x.get('x')), x.text)
        for x in figure.xpath('.//*[starts-with(@id, "a-xtick")]//text')
        if x.text
    ]
    assert len(ticks) >= 3
    for (left, one), (right, other) in zip(ticks, ticks[1:]):
        assert right - left > 3.5 * (len(one) + len(other)) + 4


@pytest.mark.longer
def test_page_says_what_it_was_made_of_by_whom_and_where(report_of):
    path, _ = report_of('jpl_rrp')
    section = html.parse(str(path)).getroot().get_element_by_id('provenance')
    told = dict(
        zip(
            (x.text_content() for x in section.iter('dt')),
            (x.text_content() for x in section.iter('dd')),
        )
    )
    content = Path('urdf/jpl_rrp.urdf').read_bytes()
    assert told['URDF'] == 'jpl_rrp.urdf'
    assert told['SHA-256'] == hashlib.sha256(content).hexdigest()
    assert told['made by'].startswith(f'robodyn_ros {rd.__version__}, in ')
    assert re.fullmatch(r'\d{4}-\d\d-\d\d \d\d:\d\d UTC', told['date'])
    assert f'Python {platform.python_version()}' in told['machine']
    assert '−9.81\u00a0m/s²' in told['gravity']


@pytest.mark.longer
def test_torques_have_their_unit_and_no_factor_beside_the_axis(facts_of):
    facts = facts_of(two_link_urdf(m1=1e-4, m2=1e-4))
    figure = html.fromstring(torque_chart(facts.torques, 0, 'N m', 'a'))
    texts = [x.text for x in figure.iter('text')]
    assert '[N m]' in texts
    assert not [x for x in texts if x and x.startswith('1e')]


@pytest.mark.longer
def test_friction_is_smooth_where_a_joint_turns_round_as_the_node_s_is(facts_of):
    text = two_link_urdf().replace('</joint>', '<dynamics damping="0.5" friction="2"/></joint>')
    time = np.linspace(0, 1, 11)
    qd = np.outer([0.01] * 11, [1.0, -1.0])  # the default of the node's friction_velocity
    motion = MotionSamples.from_samples(time, qd * time[:, None], qd, np.zeros_like(qd))
    torques = facts_of(text, motion=motion).torques
    expected = (0.5 * 0.01 + 2 * np.tanh(1)) * np.sign(qd)
    np.testing.assert_allclose(torques.friction, expected, rtol=1e-12)
    whole = torques.gravity + torques.inertial + torques.coriolis + torques.friction
    np.testing.assert_array_equal(torques.total, whole)


def test_numbers_are_written_for_readers():
    assert number(-1234.5678) == '−1235'
    assert number(1.5e-7) == '1.5·10⁻⁷'
    assert number(1e-15, 4, 1e-12) == '0'
    assert number(float('inf')) == '∞'
    assert number(None) == '–'
    assert percent(0.1234) == '12\u00a0%'
    assert percent(1.5) == '150\u00a0%'
    assert visible('a\u202eb\n') == r'a\u202eb\n'
