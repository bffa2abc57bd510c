"""Where the exporter listens: `PORT` on loopback, or `HOST:PORT`."""

from __future__ import annotations

from typing import NamedTuple

from profharness.errors import UsageError

LOOPBACK = "127.0.0.1"
_HIGHEST = 65535


class Address(NamedTuple):
    """Port 0 takes one that is free."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """What a scraper is told."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


def parse_address(text: str) -> Address:
    """Raises UsageError for anything but `PORT`, `HOST:PORT` and `[IPV6]:PORT`."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host == f"[{bare}]"
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1
    if not 0 <= number <= _HIGHEST or (colon and not bare) or (":" in bare and not bracketed):
        raise UsageError(
            f"--openmetrics: {text!r} is no port and no HOST:PORT",
            f"write a port from 0 to {_HIGHEST} (9400), or where to listen (0.0.0.0:9400, "
            "[::]:9400)",
        )
    return Address(bare or LOOPBACK, number)
