# SPDX-License-Identifier: Apache-2.0
"""
A page and its numbers on a port of this machine: read-only, for a browser of this machine.

``/`` is the page, ``/live`` a WebSocket on which one message a frame is sent to each browser; a
browser that is slow misses frames. Nothing that a browser sends is read: a message closes its
connection. The Host header must name this server, and an Origin header must be the page's own, so
that no other page that is open in the browser hears the arm, not even by a name that resolves to
this machine. Needs websockets: ``pip install websockets``.
"""

from __future__ import annotations

import asyncio
import http
import ipaddress
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from robodyn_ros.errors import InvalidArgument, NoBackend, NotReady, Phrase

LARGEST_FRAME = 65_536
"""Bytes of what is sent at once; a longer message is not sent."""

MOST_BROWSERS = 8
"""That are served at a time."""

_LARGEST_REQUEST = 256  # bytes of a message that is refused anyway
_LAGGING = 4 * LARGEST_FRAME  # bytes that wait for a browser, which then misses frames
_IDLE = 0.1  # between looks for browsers, where there is none [s]
_LOOPBACK = ('localhost', '127.0.0.1', '::1')
_HEADERS = (
    ('Content-Type', 'text/html; charset=utf-8'),
    ('Cache-Control', 'no-store'),
    ('X-Content-Type-Options', 'nosniff'),
    ('X-Frame-Options', 'DENY'),
    ('Referrer-Policy', 'no-referrer'),
    ('Content-Security-Policy', "frame-ancestors 'none'"),
)


class LiveServer:
    """
    Serves a page, and sends the latest message to every browser that shows it.

    Parameters
    ----------
    page : str
        HTML.
    latest : callable
        Returns the text or bytes to send, or None where there is nothing new; it is called in the
        server's thread, only while a browser listens.
    host : str
        Address to listen on.
    port : int
        0: any that is free.
    rate : float
        Frames a second [Hz].
    on_browsers : callable
        Called with the number of browsers after it has changed, in the server's thread.

    Attributes
    ----------
    port : int
        That it listens on.

    Raises
    ------
    NoBackend
        websockets is not installed.
    InvalidArgument
        The host is no address.
    NotReady
        The address is taken, or not this machine's.
    """

    def __init__(
        self,
        page: str,
        latest: Callable[[], str | bytes | None],
        *,
        host: str = '127.0.0.1',
        port: int = 0,
        rate: float = 30.0,
        on_browsers: Callable[[int], object] = lambda count: None,
    ) -> None:
        try:
            from websockets.asyncio.server import serve
        except ImportError as error:
            remedy = "pip install 'websockets>=13'"
            raise NoBackend('watch', Phrase(f'websockets: {error}'), remedy) from error
        if host != 'localhost':
            try:
                ipaddress.ip_address(host)
            except ValueError as error:
                raise InvalidArgument('host', host, 'localhost, or an IP address') from error
        self._page, self._latest, self._period = page.encode(), latest, 1.0 / rate
        self._host, self._serve, self._on_browsers = host, serve, on_browsers
        self._browsers: set[Any] = set()
        self._begun = threading.Event()
        self._problem: Exception | None = None
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._ends = False
        self._thread = threading.Thread(target=self._run, name='live page', daemon=True)
        self._thread.start()
        self._begun.wait()
        if isinstance(self._problem, OSError):
            self._thread.join()
            raise NotReady(
                'address', f'{host}:{port}', f'one that is free ({self._problem})'
            ) from self._problem

    @property
    def address(self) -> str:
        """What to open in a browser."""
        host = f'[{self._host}]' if ':' in self._host else self._host
        return f'http://{host}:{self.port}/'

    def check(self) -> None:
        """
        Do nothing while the page is served; call it periodically.

        Raises
        ------
        NotReady
            The server's thread has ended, by what ``latest`` or ``on_browsers`` raised.
        """
        if not self._thread.is_alive():
            raise NotReady(
                'page',
                Phrase(repr(self._problem) if self._problem else 'closed'),
                'a server that runs',
            ) from self._problem

    def close(self) -> None:
        """End all connections."""
        if self._thread.is_alive():
            self._ends = True
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serving())
        except Exception as error:  # whatever it is, the caller is to learn that the page is gone
            self._problem = error
        finally:
            self._begun.set()
            self._loop.close()

    async def _serving(self) -> None:
        async with self._serve(
            self._hold,
            self._host,
            self.port,
            process_request=self._answer,
            max_size=_LARGEST_REQUEST,
            max_queue=1,
            compression=None,
            open_timeout=5.0,
            ping_interval=20.0,
            ping_timeout=20.0,
            server_header=None,
        ) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            self._begun.set()
            due, count = self._loop.time(), 0
            # What the caller's functions raise ends this coroutine, and so the thread, here alone.
            while not self._ends:
                due = max(due + self._period, self._loop.time())
                if len(self._browsers) != count:
                    count = len(self._browsers)
                    self._on_browsers(count)
                if self._browsers:
                    self._send()
                await asyncio.sleep(due - self._loop.time() if self._browsers else _IDLE)
            if count:
                self._on_browsers(0)

    def _send(self) -> None:
        message = self._latest()
        if message is None or len(message) > LARGEST_FRAME:
            return
        from websockets.asyncio.server import broadcast

        broadcast(
            [each for each in self._browsers if _waiting(each) < _LAGGING],
            message,
        )

    async def _hold(self, connection: Any) -> None:
        """Keep a connection until it closes, or says anything."""
        self._browsers.add(connection)
        try:
            with suppress(Exception):  # of whatever kind a broken connection makes
                async for _ in connection:
                    await connection.close(1008, 'this page is read-only')
        finally:
            self._browsers.discard(connection)

    def _answer(self, connection: Any, request: Any) -> Any:
        """Return the page, or a refusal; None lets a WebSocket begin."""
        hosts, origins = request.headers.get_all('Host'), request.headers.get_all('Origin')
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return _response(connection, http.HTTPStatus.FORBIDDEN, 'not for this host')
        if any(origin != f'http://{hosts[0]}' for origin in origins) or len(origins) > 1:
            return _response(connection, http.HTTPStatus.FORBIDDEN, 'not for this page')
        if request.path == '/live':
            if not origins:
                return _response(connection, http.HTTPStatus.FORBIDDEN, 'of a page only')
            if len(self._browsers) >= MOST_BROWSERS:
                return _response(connection, http.HTTPStatus.SERVICE_UNAVAILABLE, 'busy')
            return None
        if request.path != '/':
            return _response(connection, http.HTTPStatus.NOT_FOUND, 'no such page')
        response = connection.respond(http.HTTPStatus.OK, '')
        del response.headers['Content-Type'], response.headers['Content-Length']
        for name, value in _HEADERS:
            response.headers[name] = value
        response.headers['Content-Length'] = str(len(self._page))
        response.body = self._page
        return response

    def _is_own(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        own = {self._host, *(_LOOPBACK if self._host in _LOOPBACK else ())}
        names = {f'[{name}]' if ':' in name else name for name in own}
        name, colon, port = host.rpartition(':')
        if self._host in ('0.0.0.0', '::'):  # told to serve other machines, by any address
            try:
                ipaddress.ip_address(name.strip('[]'))
            except ValueError:
                return False
            return port == str(self.port)
        return bool(colon) and name in names and port == str(self.port)


def _response(connection: Any, status: http.HTTPStatus, words: str) -> Any:
    return connection.respond(status, f'{words}\n')


def _waiting(connection: Any) -> int:
    return int(connection.transport.get_write_buffer_size())
