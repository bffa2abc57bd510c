"""Samples of the program counter, added up by kernel, instruction and source line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from profharness.trace.code_records import CodeRecord

_REASON = "instruction_not_issued_reason_"
_NO_REASON = ("", "none")


def reason_of(text: str) -> str:
    """`waitcnt` for ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT; empty for
    none.
    """
    low = text.strip().lower()
    short = low[low.rfind(_REASON) + len(_REASON) :] if _REASON in low else low
    return "" if short in _NO_REASON else short


@dataclass
class _Sum:
    samples: int = 0
    lanes: int = 0
    masked: int = 0
    issued: int = 0
    stalls: Counter[str] = field(default_factory=Counter)


@dataclass
class CodeSums:
    """Sums that grow while a file is read. `tells_issue` says whether its samples tell if the wave
    issued the instruction.
    """

    tells_issue: bool
    _sums: dict[tuple[str, str, str], _Sum] = field(default_factory=dict)

    def add(
        self,
        place: tuple[str, str, str],
        samples: int,
        mask: int | None,
        stalled: str | None,
    ) -> None:
        """Add samples at (kernel, instruction, source) with one mask of active lanes, None where it
        is not known. `stalled` is the reason for which the wave did not issue, None where it did.
        """
        one = self._sums.setdefault(place, _Sum())
        one.samples += samples
        if mask is not None:
            one.lanes += samples * mask.bit_count()
            one.masked += samples
        if not self.tells_issue:
            return
        if stalled is None:
            one.issued += samples
        else:
            one.stalls[stalled or "not stated"] += samples

    def records(self) -> tuple[CodeRecord, ...]:
        """All sums, those of most samples first, then by name."""
        ordered = sorted(self._sums.items(), key=lambda item: (-item[1].samples, item[0]))
        return tuple(
            CodeRecord(
                kernel=kernel,
                instruction=instruction,
                source=source,
                samples=one.samples,
                lanes=one.lanes,
                masked=one.masked,
                issued=one.issued if self.tells_issue else None,
                stalls=tuple(sorted(one.stalls.items(), key=lambda pair: (-pair[1], pair[0]))),
            )
            for (kernel, instruction, source), one in ordered
        )


def source_of(instruction: str, comment: str) -> str:
    """The source line in the comment of an instruction. That of code which the tool could not
    decode (no instruction) holds an address instead.
    """
    return comment.strip() if instruction else ""
