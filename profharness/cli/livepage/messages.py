"""What the run and the server of its live page say to one another, a line of JSON each: the server
where it is, the run how it ended.
"""

from __future__ import annotations

import msgspec

from profharness.analysis.live.records import LiveAnswer


class Listening(msgspec.Struct, frozen=True):
    """The first and only line of the server."""

    port: int
    path: str


class Ended(msgspec.Struct, frozen=True):
    """The only line of the run; one that is killed says nothing."""

    answer: LiveAnswer = LiveAnswer()


def line(message: msgspec.Struct) -> bytes:
    """The message as it is sent."""
    return msgspec.json.encode(message) + b"\n"
