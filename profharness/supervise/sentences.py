"""What tools say in a pass's log, and in which line: that they refuse their command line, abort, or
caught a signal. What a sentence means for the pass is judged in `diagnosis`. Pure.
"""

from __future__ import annotations

import re
from functools import cache

from profharness import layers
from profharness.layers.known_faults import TOO_MANY

# a tool's own fatal lines come before an abort that it makes itself
_FATAL = re.compile(
    rf"^F\d{{8}} [\d:.]+ +\S+ \S+:\d+\] |registered more than once|profile cfg failed with error "
    rf"code|ring_buffer: m\w*map failed|{TOO_MANY}",
    re.MULTILINE,
)


@cache
def _refusals() -> tuple[re.Pattern[str], ...]:
    patterns = [pattern for about in layers.descriptions() for pattern in about.refusals]
    return tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


@cache
def _caught() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(about.caught) for about in layers.descriptions() if about.caught)


def refusal(log_text: str) -> str:
    """The sentence by which the tool refused its command line, so that the workload never ran;
    empty if it did not.
    """
    return next(
        (match.group(0).strip() for pattern in _refusals() if (match := pattern.search(log_text))),
        "",
    )


def too_many_counters(log_text: str) -> bool:
    """Whether the tool said that a pass asks for more counters than the device counts at once."""
    return bool(re.search(TOO_MANY, log_text, re.IGNORECASE))


def refused_line(log_text: str) -> str:
    """The line in which it said so; empty without."""
    match = re.search(TOO_MANY, log_text, re.IGNORECASE)
    return line_of(log_text, match) if match else ""


def fatal_line(log_text: str) -> str:
    """The sentence with which the tool aborted its process by itself; empty without."""
    match = _FATAL.search(log_text)
    return line_of(log_text, match) if match else ""


def caught_signal(log_text: str) -> int | None:
    """The number of the signal of which the tool's handler said that it ends the process; the first
    of several.
    """
    matches = [match for pattern in _caught() if (match := pattern.search(log_text))]
    return int(matches[0].group(1)) if matches else None


def line_of(log_text: str, match: re.Match[str]) -> str:
    """The line in which a match begins."""
    start = log_text.rfind("\n", 0, match.start()) + 1
    return log_text[start:].split("\n", 1)[0].strip()[:200]
