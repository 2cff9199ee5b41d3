# SPDX-License-Identifier: Apache-2.0
"""The live page's server: read-only, for its own page, whatever knocks at its port."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

pytest.importorskip('websockets', reason='websockets is not installed: pip install websockets')

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from robodyn_ros.errors import InvalidArgument, NoBackend, NotReady
from robodyn_ros.monitoring import live_server
from robodyn_ros.monitoring.live_server import LARGEST_FRAME, MOST_BROWSERS, LiveServer


@pytest.fixture
def server():
    texts = iter(range(10**9))
    browsers = []
    made = LiveServer(
        '<p>the page', lambda: f'{next(texts)}', rate=100.0, on_browsers=browsers.append
    )
    made.browsers = browsers
    yield made
    made.close()


def live(server, **changes):
    options = {'origin': f'http://127.0.0.1:{server.port}', 'open_timeout': 10, **changes}
    return connect(f'ws://127.0.0.1:{server.port}/live', **options)


def until(condition):
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def status(server, path='/', **headers):
    request = urllib.request.Request(f'http://127.0.0.1:{server.port}{path}', headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


def test_it_serves_the_page_and_frames(server):
    code, text, headers = status(server)
    assert (code, text) == (200, '<p>the page')
    assert headers['X-Content-Type-Options'] == 'nosniff' and headers['X-Frame-Options'] == 'DENY'
    with live(server) as browser:
        frames = [int(browser.recv(timeout=10)) for _ in range(5)]
    assert frames == sorted(frames)
    assert status(server, '/other')[0] == 404


def test_it_listens_on_the_loopback_alone(server):
    assert server.address.startswith('http://127.0.0.1:')
    with open('/proc/net/tcp', encoding='ascii') as table:
        listening = [
            line.split()[1]
            for line in table
            if line.split()[3] == '0A' and line.split()[1].endswith(f':{server.port:04X}')
        ]
    assert listening == [f'0100007F:{server.port:04X}']


@pytest.mark.parametrize(
    'origin', ['http://evil.example', 'null', 'https://127.0.0.1', 'http://127.0.0.1:1', None]
)
def test_a_page_of_another_origin_receives_nothing(server, origin):
    with pytest.raises(InvalidStatus) as refused:
        live(server, origin=origin)
    assert refused.value.response.status_code == 403
    assert server.browsers == []


@pytest.mark.parametrize('host', ['evil.example', 'evil.example:{port}', '127.0.0.1:1', ''])
def test_a_name_that_resolves_to_this_machine_is_refused(server, host):
    assert status(server, Host=host.format(port=server.port))[0] in (400, 403)


def test_a_browser_that_says_anything_is_disconnected(server):
    with live(server) as browser:
        browser.send('{"torque": 1}')
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                browser.recv(timeout=10)
    assert closed.value.rcvd.code == 1008


def test_a_large_message_is_not_read(server):
    with live(server) as browser:
        browser.send('x' * 100_000)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                browser.recv(timeout=10)
    assert closed.value.rcvd.code == 1009


def test_browsers_are_bounded_and_counted(server):
    with ExitStack() as opened:
        for _ in range(MOST_BROWSERS):
            opened.enter_context(live(server))
        with pytest.raises(InvalidStatus) as refused:
            live(server)
        assert refused.value.response.status_code == 503
        until(lambda: server.browsers and server.browsers[-1] == MOST_BROWSERS)
    until(lambda: server.browsers[-1] == 0)
    assert max(server.browsers) == MOST_BROWSERS


@pytest.mark.parametrize('place', ['latest', 'on_browsers'])
def test_a_server_that_its_caller_broke_says_so(place):
    def breaking(*arguments):
        raise RuntimeError('broken')

    functions = {'latest': lambda: 'text', place: breaking}
    made = LiveServer('<p>the page', functions.pop('latest'), **functions)
    made.check()
    with pytest.raises(ConnectionClosed), live(made) as browser:
        while True:
            browser.recv(timeout=10)
    until(lambda: not made._thread.is_alive())
    with pytest.raises(NotReady, match='broken'):
        made.check()


def test_a_browser_that_does_not_read_costs_frames_and_no_memory(monkeypatch):
    monkeypatch.setattr(live_server, '_LAGGING', 200_000)
    made = LiveServer('', lambda: 'x' * LARGEST_FRAME, rate=1000.0)
    try:
        plain = socket.create_connection(('127.0.0.1', made.port))
        plain.sendall(
            b'GET /live HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: http://127.0.0.1:%d\r\n'
            b'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
            b'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n' % (made.port, made.port)
        )
        plain.recv(10)
        time.sleep(0.5)
        waiting = [live_server._waiting(each) for each in list(made._browsers)]
        assert waiting and max(waiting) < 400_000
        plain.close()
    finally:
        made.close()


def test_a_frame_that_is_too_long_is_not_sent():
    texts = iter(['x' * (LARGEST_FRAME + 1)] + ['short'] * 10_000)
    made = LiveServer('', lambda: next(texts), rate=100.0)
    try:
        with live(made) as browser:
            assert browser.recv(timeout=10) == 'short'
    finally:
        made.close()


def test_an_address_that_is_taken_or_none_is_said(server):
    with pytest.raises(NotReady, match='address'):
        LiveServer('', lambda: None, port=server.port)
    with pytest.raises(InvalidArgument, match='host'):
        LiveServer('', lambda: None, host='example.com')


def test_without_websockets_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, 'websockets.asyncio.server', None)
    with pytest.raises(NoBackend, match='pip install'):
        LiveServer('', lambda: None)
