"""Marks of batches: what vLLM and SGLang write around each of them (docs/formats.md#server-steps).

`execute_8192_context_9(...)_generation_37(...)` counts the sequences whose prompts are read and
those that are continued, each with sums in brackets, of which the first is the number of tokens.
`step[DECODE bs=32]` has the mode of SGLang's forward pass and the size of its batch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profharness.analysis.batches.records import BatchKind

_PART = r"(\d+)\((?:sq)?(\d+)[^()]*\)"
_EXECUTE = re.compile(rf"^execute_(?:\d+_)?context_{_PART}_generation_{_PART}$")
_STEP = re.compile(r"^step\[(EXTEND|PREFILL|DECODE|MIXED) bs=(\d+)[^\]]*\]$")
_MODES: dict[str, BatchKind] = {
    "EXTEND": "prefill",
    "PREFILL": "prefill",
    "DECODE": "decode",
    "MIXED": "mixed",
}
_MOST_DIGITS = 15
"""Digits of a number of tokens that can be meant."""

STEP_RANGES: dict[str, dict[BatchKind, str]] = {
    "execute": {
        "prefill": r"execute_.*_generation_0\(.*",
        "decode": r"execute_.*context_0\(.*",
        "mixed": r"execute_.*context_[1-9].*_generation_[1-9].*",
    },
    "step": {
        "prefill": r"step\[(EXTEND|PREFILL) .*",
        "decode": r"step\[DECODE .*",
        "mixed": r"step\[MIXED .*",
    },
}
"""By family of marks and kind: an expression that fits the whole name of these marks alone."""


@dataclass(frozen=True)
class BatchMark:
    """One batch: the family of its mark, how many sequences it reads and continues, and tokens of
    both; None where the mark does not say.
    """

    family: str
    kind: BatchKind
    sequences: int
    continued: int
    prefill_tokens: int | None
    decode_tokens: int | None


def batch_of(name: str) -> BatchMark | None:
    """The batch that a mark of this name stands for; None for any other mark, and an empty one."""
    found = _EXECUTE.match(name)
    if found is not None:
        return _execute(found.groups())
    step = _STEP.match(name)
    if step is None or len(step[2]) > _MOST_DIGITS or not int(step[2]):
        return None
    kind, size = _MODES[step[1]], int(step[2])
    decodes = kind == "decode"
    return BatchMark("step", kind, size, size if decodes else 0, None, size if decodes else None)


def _execute(parts: tuple[str, ...]) -> BatchMark | None:
    if any(len(part) > _MOST_DIGITS for part in parts):
        return None
    read, read_tokens, continued, continued_tokens = map(int, parts)
    if not read and not continued:
        return None
    kind: BatchKind = "mixed" if read and continued else "prefill" if read else "decode"
    return BatchMark("execute", kind, read + continued, continued, read_tokens, continued_tokens)
