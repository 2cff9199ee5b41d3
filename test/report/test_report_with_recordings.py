# SPDX-License-Identifier: Apache-2.0
"""`robodyn report` with recordings, and its PDF."""

from dataclasses import replace

import numpy as np
import pytest
from browser import FAULTS, opened
from command_line import error_of, invoked, json_of, output_of
from lxml import html
from robots import two_link_urdf
from simulated_recordings import recorded_folder

import robodyn_ros as rd
from robodyn_ros.errors import NoBackend
from robodyn_ros.identification import DriveTerms, Recording, identify
from robodyn_ros.report import pdf
from robodyn_ros.report.identification_page import identification_page
from robodyn_ros.report.pdf import BROWSERS, browser_path, print_page

pytestmark = pytest.mark.slow  # an arm is identified first


CHAIN = ('--base', 'base', '--tip', 'tip')


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """Return a folder with a wrong URDF, two recordings of the true arm, and the report."""
    folder = recorded_folder(tmp_path_factory.mktemp('recorded'))
    files = ('--recording', folder / 'motion.csv', '--validate', folder / 'other.csv')
    output_of('report', folder / 'arm.urdf', *CHAIN, *files, '-o', folder / 'report.html')
    return folder


def test_measured_and_predicted_torques_stand_before_and_after(recorded, browser):
    with opened(browser, recorded / 'report.html', 390) as page:
        assert page.evaluate(FAULTS) == []
    page = html.parse(str(recorded / 'report.html')).getroot()
    section = page.get_element_by_id('recording')
    labels = [x.get('aria-label') for x in section.iter('svg')]
    for k in (1, 2, 3):
        assert f'Measured and predicted torque of q{k}' in labels
        assert f'Measured minus predicted torque of q{k} over its velocity' in labels
    legend = [x.text_content() for x in section.find_class('legend')[0].iter('li')]
    assert legend == ['measured', 'identified', 'before: the URDF']
    rows = [[cell.text_content() for cell in row] for row in section.iter('tr')]
    (held_out,) = (row for row in rows if row[0].startswith('recording 2, validation'))
    before, _, after = (float(cell.removesuffix('\u00a0%')) for cell in held_out[1:])
    assert after < 2 < 10 < before
    # The verdict on the first page has the numbers of the table.
    (verdict,) = page.find_class('verdict')
    assert 'warning' in verdict.get('class') and 'can be used' not in verdict.text_content()
    said = f'is {held_out[1]} off the recording, that of the identified model {held_out[3]}'
    assert said in verdict.text_content()
    sources = page.get_element_by_id('provenance').text_content()
    assert 'motion.csv, SHA-256' in sources and 'other.csv, SHA-256' in sources


def test_charts_have_their_caption_above_and_the_unit_of_torque_beside(recorded):
    model = rd.RobotModel.from_urdf(recorded / 'arm.urdf', base_link='base', tip_link='tip')
    recording = Recording.from_csv(recorded / 'motion.csv', model)
    # The same drives, telling amperes: a quarter of the numbers, with the factor that is known.
    in_amperes = replace(recording, effort=recording.effort / 4)
    ticks = []
    for each, scale in ((recording, None), (in_amperes, 4.0)):
        found = identify(model, [each], friction=DriveTerms(), effort_scale=scale)
        page = html.fromstring(identification_page(found, model, each))
        pairs = page.xpath('//*[@class="pairs"]/figure')
        assert len(pairs) == 6
        for figure in pairs:
            assert [child.tag for child in figure] == ['figcaption', 'svg']
            texts = [x.text for x in figure.iter('text') if x.text]
            assert 'torque [N m]' in texts or 'force [N]' in texts
        ticks.append([x.text for x in pairs[0].iter('text')])
    assert ticks[0] == ticks[1]


def test_effort_before_is_the_urdfs_torque(recorded):
    model = rd.RobotModel.from_urdf(recorded / 'arm.urdf', base_link='base', tip_link='tip')
    recording = Recording.from_csv(recorded / 'motion.csv', model)
    found = identify(model, [recording], friction=DriveTerms())
    before, prediction = found.effort_before(model, recording), found.predict(recording)
    # Independent of the regressor: accelerations by differences, inside of the motion.
    qdd = np.gradient(recording.velocity, recording.time, axis=0)
    torque = rd.inverse_dynamics(model, recording.position, recording.velocity, qdd)
    at = [np.interp(prediction.time, recording.time, column) for column in torque.T]
    inner = slice(100, -100)
    error = (before - np.transpose(at))[inner]
    assert np.sqrt((error**2).mean()) < 0.05 * np.sqrt((before[inner] ** 2).mean())


def test_validation_without_a_recording_is_refused(recorded):
    given = ('--validate', recorded / 'other.csv')
    assert 'go with --recording' in error_of('report', recorded / 'arm.urdf', *CHAIN, *given)


def test_pdf_is_written_beside_the_page(tmp_path, browser):
    (tmp_path / 'arm.urdf').write_text(two_link_urdf())
    path = tmp_path / 'a page.html'
    names = ('--name', 'Cell <4>', '--serial', '08/15', '--author', 'A. B.', '--company', 'C & D')
    record = json_of('report', tmp_path / 'arm.urdf', '--pdf', '-o', path, *names)
    content = (tmp_path / 'a page.pdf').read_bytes()
    assert content.startswith(b'%PDF-') and len(content) > 30_000
    fields = html.parse(str(path)).getroot().find_class('fields')[0]
    assert [x.text_content() for x in fields.iter('dd')] == ['Cell <4>', '08/15', 'A. B.', 'C & D']
    assert record['pdf'] == str(tmp_path / 'a page.pdf')


def test_pdf_without_a_browser_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf.shutil, 'which', lambda name: None)
    with pytest.raises(NoBackend, match=', '.join(BROWSERS)):
        browser_path()
    assert isinstance(invoked('report', 'urdf/jpl_rrp.urdf', '--pdf').exception, NoBackend)


def test_browser_that_fails_is_quoted(tmp_path):
    broken = tmp_path / 'browser'
    broken.write_text('#!/bin/sh\necho cannot draw >&2\nexit 3\n')
    broken.chmod(0o755)
    with pytest.raises(NoBackend, match='cannot draw'):
        print_page(str(broken), tmp_path / 'page.html', tmp_path / 'page.pdf')
    assert not (tmp_path / 'page.pdf').exists()
