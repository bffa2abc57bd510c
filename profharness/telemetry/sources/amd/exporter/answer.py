"""An exporter's answer: asked for over HTTP, and taken apart.

Nobody but the address that the user named is asked: no proxy, no redirect. An answer is bounded in
time and in size, since the samples beside it go on meanwhile.
"""

from __future__ import annotations

import contextlib
import http.client
import math
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

TIMEOUT_S = 2.0
LIMIT_BYTES = 8 << 20
_LINE = re.compile(r"([A-Za-z_:][\w:]*)\{(.*)\}\s+(\S+)")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')


class ExporterError(Exception):
    """The exporter gives nothing that can be used; the text is one clause that says why."""


class Address(NamedTuple):
    """Where the exporter listens."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        """`localhost:8001`, for people and files."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Series(NamedTuple):
    """One line: `name{labels} value`."""

    name: str
    labels: dict[str, str]
    value: float


def parse_address(url: str) -> Address:
    """Raises ValueError, with a clause that repeats no secret. Neither a user nor a query is taken:
    the address is kept in the run's files.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("it is not an address") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("it holds a user, a password or a query, which a run's files would keep")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not an http or https address")
    secure = parts.scheme == "https"
    return Address(secure, parts.hostname, port or (443 if secure else 80), parts.path or "/")


def fetch(address: Address, timeout_s: float = TIMEOUT_S) -> str:
    """The text that is there, whole. Raises ExporterError."""
    kind = http.client.HTTPSConnection if address.secure else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout_s)
    end = time.monotonic() + timeout_s
    slow = ExporterError(f"{address.place} did not answer within {timeout_s:g} s")
    try:
        connection.connect()
        # a socket's own time-out begins anew with every byte; this one ends the whole
        guard = threading.Timer(max(end - time.monotonic(), 0), _hang_up, (connection.sock,))
        guard.daemon = True
        guard.start()
        try:
            found = _body(connection, address)
        finally:
            guard.cancel()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= end:
            raise slow from None
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ExporterError(f"{address.place} cannot be read ({why})") from error
    finally:
        connection.close()
    if time.monotonic() >= end:
        raise slow  # cut off, which looks like the end of an answer without a length
    return found.decode(errors="replace")


def _body(connection: http.client.HTTPConnection, address: Address) -> bytes:
    connection.request("GET", address.path, headers={"Accept": "text/plain"})
    answer = connection.getresponse()
    if answer.status != http.client.OK:
        raise ExporterError(f"{address.place} answers {answer.status} {answer.reason}".strip())
    found = answer.read(LIMIT_BYTES + 1)
    if len(found) > LIMIT_BYTES:
        raise ExporterError(f"the answer of {address.place} is longer than 8 MiB")
    return found


def _hang_up(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def series_of(text: str, part: str) -> Iterator[Series]:
    """The lines of Prometheus' text whose names hold `part`; those without a number are left
    out.
    """
    for line in text.split("\n"):
        if part not in line or line.startswith("#"):
            continue
        found = _LINE.match(line)
        if found is None or part not in found[1]:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        if math.isfinite(value):
            yield Series(found[1], dict(_LABEL.findall(found[2])), value)
