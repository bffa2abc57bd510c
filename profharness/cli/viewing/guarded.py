"""A server on loopback for who was given its address: a folder that nobody can guess, the check of
the host that was asked for, and no more waiting connections than a page needs.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from profharness.cli.viewing.link import ADDRESS

# a page under another name was led here by its name server
_OWN_NAMES = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
_WAITING = 64  # connections that have not asked for the file: of more the oldest is closed
ASKS_WITHIN_S = 10.0  # for each piece of a request

_Connection = socket.socket | tuple[bytes, socket.socket]
"""How socketserver types what servers of streams and of packets get."""


def knows_us(headers: Message) -> bool:
    """Whether a visitor asks this computer by one of its own names (against DNS rebinding)."""
    hosts = headers.get_all("Host", [])
    return len(hosts) == 1 and _OWN_NAMES.fullmatch(hosts[0].strip()) is not None


class GuardedServer(ThreadingHTTPServer):
    """Listens on loopback alone. `folder` is the path that nobody can guess, between two slashes.

    Raises OSError when the port is taken; 0 is one that is free.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = _WAITING

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.folder = f"/{secrets.token_urlsafe(16)}/"
        self._visitors = _Visitors()
        super().__init__((ADDRESS, port), handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def name_in_folder(self, path: str) -> str | None:
        """What a path names of the folder that nobody can guess; None for one outside of it."""
        folder, name = path[: len(self.folder)], path[len(self.folder) :]
        return name if hmac.compare_digest(folder.encode(), self.folder.encode()) else None

    def process_request(self, request: _Connection, client_address: object) -> None:
        """Answer in a thread of its own, which waits for nobody else."""
        self._visitors.came(_socket(request))
        super().process_request(request, client_address)

    def admit(self, connection: socket.socket) -> None:
        """The connection is one that fetches what it may: it is not closed for others."""
        self._visitors.went(connection)

    def shutdown_request(self, request: _Connection) -> None:
        """The connection has ended."""
        self._visitors.went(_socket(request))
        super().shutdown_request(request)

    def handle_error(self, request: _Connection, client_address: object) -> None:
        """A visitor that sends garbage or goes away is no news."""


def _socket(request: _Connection) -> socket.socket:
    return request if isinstance(request, socket.socket) else request[1]


@dataclass
class _Visitors:
    """Connections that have not asked for the file yet, in the order in which they came."""

    _open: dict[socket.socket, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def came(self, connection: socket.socket) -> None:
        """One more; where they are too many, the one that has waited longest is closed."""
        with self._lock:
            self._open[connection] = None
            oldest = next(iter(self._open)) if len(self._open) > _WAITING else None
            if oldest is not None:
                del self._open[oldest]
        if oldest is not None:
            with suppress(OSError):  # it may have gone by itself
                oldest.shutdown(socket.SHUT_RDWR)

    def went(self, connection: socket.socket) -> None:
        """It got what it wanted, or ended."""
        with self._lock:
            self._open.pop(connection, None)
