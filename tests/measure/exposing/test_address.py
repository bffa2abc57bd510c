"""Where `--openmetrics` listens."""

from __future__ import annotations

import pytest

from profharness.errors import UsageError
from profharness.measure.exposing.address import parse_address


@pytest.mark.parametrize(
    ("text", "found", "url"),
    [
        ("9400", ("127.0.0.1", 9400), "http://127.0.0.1:9400/metrics"),
        ("0.0.0.0:0", ("0.0.0.0", 0), "http://0.0.0.0:0/metrics"),
        ("nid001:80", ("nid001", 80), "http://nid001:80/metrics"),
        ("[::1]:9400", ("::1", 9400), "http://[::1]:9400/metrics"),
    ],
)
def test_ports_and_hosts(text: str, found: tuple[str, int], url: str) -> None:
    address = parse_address(text)
    assert tuple(address) == found
    assert address.url == url


@pytest.mark.parametrize("text", ["x", "65536", "-1", ":80", "host:", "::1:80", "80/metrics", "²"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no port and no HOST:PORT"):
        parse_address(text)
