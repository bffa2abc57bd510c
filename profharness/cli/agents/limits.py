"""How much an agent gets to read: names and sentences cut to length, and answers to a size.

Names come from files that anybody may have made. They are data: what has no shape is spelled out,
and nothing of them reaches an agent's instructions.
"""

from __future__ import annotations

import msgspec

from profharness.errors import UsageError
from profharness.rundir.shown.screen import encoded, one_line, visible

MOST_ROWS = 200
MOST_FIGURES = 200
MOST_FINDINGS = 50
LONGEST_NAME = 240
LONGEST_SENTENCE = 1_000
LONGEST_PLAN = 20_000
MOST_BYTES = 500_000

_SENTENCES = frozenset(
    {"answer", "next", "trust", "text", "message", "advice", "verdict_needs", "needs", "note"}
)
_PLAN = "plan"
_REMARK = 40  # characters, more than the remark on what was cut takes


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """`text` as one visible line of at most `longest` characters; what is longer loses its
    middle.
    """
    shown = one_line(text, longest if len(text) <= longest else longest - _REMARK)
    if len(shown) <= longest:
        return shown
    half = (longest - 3) // 2
    return f"{shown[:half]} … {shown[-half:]}"


def answer_bytes(answer: msgspec.Struct) -> bytes:
    """The answer as JSON, each text in it visible and cut. Raises UsageError where it is too long
    all the same.
    """
    data = encoded(_bounded(msgspec.to_builtins(answer)))
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"the answer has {len(data)} bytes, and {MOST_BYTES} is the most",
            "ask for fewer rows (top), for figures by their names, or for single points",
        )
    return data


def _bounded(value: object, key: str = "") -> object:
    if isinstance(value, str):
        if key == _PLAN:
            return visible(value) if len(value) <= LONGEST_PLAN else _first_lines(value)
        return cut(value, LONGEST_SENTENCE if key in _SENTENCES else LONGEST_NAME)
    if isinstance(value, dict):
        return {cut(str(name)): _bounded(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(one, key) for one in value]
    return value


def _first_lines(text: str) -> str:
    kept = text[:LONGEST_PLAN].splitlines()[:-1]
    rest = len(text.splitlines()) - len(kept)
    return visible("\n".join([*kept, f"# ... {rest} further lines are left out"]))
