"""One client's connection: a non-blocking socket, plain or TLS, with a byte machine (http1, http2)
on top.

It holds at most one request. Whoever runs the event loop calls `on_event` when the socket is ready
and sees what became of it; nothing here waits.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

from profharness_workloads.loadgen import http1, http2

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
NOTHING, CONNECTED, ANSWERED = 0, 1, 2
CLOSED, CONNECTING, SHAKING, OPEN = 0, 1, 2, 3
CHUNK = 1 << 18
_PENDING = (errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN)

Codec = Union[http1.Http1, http2.Http2]


class Lost(Exception):  # noqa: N818 - named for what became of the connection
    """The connection is gone; the text says why."""


class Target(NamedTuple):
    """Where requests go. `address` is resolved beforehand, so that no name service is asked while
    load runs.
    """

    name: str
    family: int
    address: Tuple[Any, ...]
    tls: Optional[ssl.SSLContext]
    codec: Callable[[], Codec]


def resolved(host_port: str) -> Tuple[int, Tuple[Any, ...]]:
    """(family, address) of HOST:PORT. Raises OSError when the name is not known, ValueError without
    a port.
    """
    host, _, port = host_port.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError("%r is not HOST:PORT" % host_port)
    first = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    return int(first[0]), first[4]


def tls_context(ca: str, http2: bool) -> ssl.SSLContext:
    """Checks the server's certificate against `ca` (a PEM file; "" for the system's). Raises
    OSError or ssl.SSLError.
    """
    context = ssl.create_default_context(cafile=ca or None)
    context.set_alpn_protocols(["h2"] if http2 else ["http/1.1"])
    return context


class Connection:
    """States go CLOSED, CONNECTING, SHAKING (TLS), OPEN. What the loop keeps with a request stands
    in the plain attributes.
    """

    def __init__(self, target: Target, server: int, poller: select.epoll):
        self.target, self.server, self._poller = target, server, poller
        self.state = CLOSED
        self.fd = -1
        self.codec: Codec = target.codec()
        self.transmitted = self.received = 0
        self._socket: Any = None
        self._out: Any = b""
        self._mask = 0
        # of the request in flight, kept here by the loop
        self.busy = False
        self.sequence = self.intended_ns = self.sent_ns = self.think_ns = self.items = 0
        self.slot = 0

    def open(self) -> None:
        """Begin to connect. Raises Lost when it fails at once."""
        self.codec = self.target.codec()
        self._out = b""
        self._socket = socket.socket(self.target.family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        if self.target.family != socket.AF_UNIX:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = self._socket.connect_ex(self.target.address)
        if code not in (0, *_PENDING):
            self.close()
            raise Lost(os.strerror(code))
        self.state, self.fd, self._mask = CONNECTING, self._socket.fileno(), WRITE
        self._poller.register(self.fd, WRITE)

    def close(self) -> None:
        """Close the socket, if there is one; what was not yet sent is dropped."""
        if self._socket is not None:
            try:
                self._socket.close()
            except OSError:
                pass  # it is given up anyway
        self.state, self.fd, self._socket, self._out, self.busy = CLOSED, -1, None, b"", False

    def send(self, data: bytes) -> None:
        """Send, now as far as the socket takes it, the rest when it is ready. Raises Lost."""
        if len(self._out):
            self._out = b"".join((self._out, data))
            return
        self._out = data
        self._flush()

    def on_event(self) -> int:
        """Go on after the socket became ready: NOTHING, CONNECTED or ANSWERED (see `codec.error`).
        Raises Lost.
        """
        try:
            if self.state == OPEN:
                return self._transfer()
            return self._establish()
        except (http1.BadAnswer, http2.BadAnswer) as error:
            raise Lost(str(error)) from error
        except ssl.SSLError as error:
            raise Lost("TLS: %s" % (error.reason or error)) from error
        except OSError as error:
            raise Lost(error.strerror or str(error)) from error

    def _establish(self) -> int:
        if self.state == CONNECTING:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise Lost(os.strerror(code))
            if self.target.tls is not None:
                host = self.target.name.rpartition(":")[0].strip("[]")
                self._socket = self.target.tls.wrap_socket(
                    self._socket, server_hostname=host, do_handshake_on_connect=False
                )
            self.state = SHAKING
        if self.target.tls is not None:
            try:
                self._socket.do_handshake()
            except ssl.SSLWantReadError:
                self._watch(READ)
                return NOTHING
            except ssl.SSLWantWriteError:
                self._watch(WRITE)
                return NOTHING
        self.state = OPEN
        self._watch(READ)
        opening = self.codec.opening()
        if opening:
            self.send(opening)
        return CONNECTED

    def _transfer(self) -> int:
        if len(self._out):
            self._flush()
        over = False
        while True:
            try:
                data = self._socket.recv(CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError, InterruptedError):
                break
            if not data:
                raise Lost("the server closed the connection")
            self.received += len(data)
            over = self.codec.feed(data) or over
            if self.codec.reply:
                reply, self.codec.reply = self.codec.reply, b""
                self.send(reply)
            if self.target.tls is None or not self._socket.pending():
                break
        return ANSWERED if over else NOTHING

    def _flush(self) -> None:
        data = self._out
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError, InterruptedError):
            sent = 0
        except ssl.SSLError as error:
            raise Lost("TLS: %s" % (error.reason or error)) from error
        except OSError as error:
            raise Lost(error.strerror or str(error)) from error
        self.transmitted += sent
        if sent == len(data):
            self._out = b""
            if self._mask != READ:
                self._watch(READ)
        else:
            self._out = memoryview(data)[sent:]
            self._watch(READ | WRITE)

    def _watch(self, mask: int) -> None:
        if mask != self._mask:
            self._poller.modify(self.fd, mask)
            self._mask = mask
