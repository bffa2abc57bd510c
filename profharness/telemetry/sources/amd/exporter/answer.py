"""An exporter's answer: asked for over HTTP, and taken apart.

Nobody but the address that the user named is asked: no proxy, no redirect. An answer is bounded in
time and in size, since the samples beside it go on meanwhile.
"""

from __future__ import annotations

import http.client
import math
import re
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

TIMEOUT_S = 2.0
LIMIT_BYTES = 8 << 20
_BLOCK = 1 << 16
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
    """The text that is there. Raises ExporterError."""
    end = time.monotonic() + timeout_s
    kind = http.client.HTTPSConnection if address.secure else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout_s)
    slow = f"{address.place} did not answer within {timeout_s:g} s"
    try:
        connection.request("GET", address.path, headers={"Accept": "text/plain"})
        connected = connection.sock
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise ExporterError(f"{address.place} answers {answer.status} {answer.reason}".strip())
        found = bytearray()
        while block := answer.read1(_BLOCK):
            found += block
            if len(found) > LIMIT_BYTES:
                raise ExporterError(f"the answer of {address.place} is longer than 8 MiB")
            left = end - time.monotonic()
            if left <= 0:
                raise ExporterError(slow)
            if connected is not None and connected.fileno() >= 0:
                connected.settimeout(left)
    except TimeoutError:
        raise ExporterError(slow) from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ExporterError(f"{address.place} cannot be read ({why})") from error
    finally:
        connection.close()
    return found.decode(errors="replace")


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
