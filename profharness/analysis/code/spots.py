"""Records of code, added up by line or by instruction. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from profharness.analysis.code.records import By, CodeHotspots, CodeRow, StallReason
from profharness.errors import UsageError
from profharness.stats.proportion import wilson
from profharness.trace.code_records import CodeFile, CodeRecord, Method

# kernel, source, instruction, and whether the tool could decode it
_Place = tuple[str, str, str, bool]


@dataclass
class _Sum:
    samples: int = 0
    lanes: int = 0
    masked: int = 0
    issued: int = 0
    tells_issue: bool = True
    stalls: Counter[str] = field(default_factory=Counter)
    hits: int = 0
    latency: int = 0
    stall: int = 0
    idle: int = 0

    def add(self, record: CodeRecord) -> None:
        self.samples += record.samples
        self.lanes += record.lanes
        self.masked += record.masked
        self.issued += record.issued or 0
        self.tells_issue &= record.issued is not None
        self.stalls.update(dict(record.stalls))
        self.hits += record.hits
        self.latency += record.latency
        self.stall += record.stall
        self.idle += record.idle


def code_hotspots(files: Sequence[CodeFile], by: By, pass_name: str | None = None) -> CodeHotspots:
    """The table of some files, which one method made.

    Raises UsageError for files of several methods: shares of samples and of cycles do not add up.
    """
    methods = sorted({file.method for file in files if file.records})
    if len(methods) > 1:
        raise UsageError(
            f"the files hold {' and '.join(methods)}: their counts do not add up",
            "name those of one method, or a pass of the run with --pass",
        )
    if not methods:
        return CodeHotspots(by=by, pass_name=pass_name, method=None)
    method = methods[0]
    sums = _added((record for file in files for record in file.records), by)
    rows = _cycle_rows(sums) if method == "thread_trace" else _sample_rows(sums, method)
    in_cycles = method == "thread_trace"
    total = bare = undecoded = 0
    for (_, source, _, decoded), one in sums.items():
        weight = one.latency if in_cycles else one.samples
        total += weight
        bare += weight if decoded and not source else 0
        undecoded += 0 if decoded else weight
    return CodeHotspots(
        by=by,
        pass_name=pass_name,
        method=method,
        samples=None if in_cycles else total,
        latency_cycles=total if in_cycles else None,
        without_source=bare,
        undecoded=undecoded,
        rows=tuple(sorted(rows, key=_order)),
    )


def _added(records: Iterable[CodeRecord], by: By) -> dict[_Place, _Sum]:
    sums: dict[_Place, _Sum] = {}
    for record in records:
        instruction = record.instruction if by == "instruction" else ""
        place = (record.kernel, record.source, instruction, bool(record.instruction))
        sums.setdefault(place, _Sum()).add(record)
    return sums


def _order(row: CodeRow) -> tuple[float, str, str, str]:
    return -row.share, row.kernel or "", row.source or "", row.instruction or ""


def _sample_rows(sums: dict[_Place, _Sum], method: Method) -> Iterable[CodeRow]:
    total = sum(one.samples for one in sums.values())
    for (kernel, source, instruction, decoded), one in sums.items():
        low, high = wilson(one.samples, total)
        tells_issue = method == "stochastic" and one.tells_issue
        yield CodeRow(
            kernel=kernel or None,
            source=source or None,
            instruction=instruction or None,
            decoded=decoded,
            share=one.samples / total,
            share_low=low,
            share_high=high,
            samples=one.samples,
            lanes=one.lanes / one.masked if one.masked else None,
            issued=one.issued if tells_issue else None,
            stalled=one.samples - one.issued if tells_issue else None,
            stall_reasons=tuple(
                StallReason(reason=reason, samples=count, share=count / one.samples)
                for reason, count in sorted(
                    one.stalls.items(), key=lambda pair: (-pair[1], pair[0])
                )
            ),
        )


def _cycle_rows(sums: dict[_Place, _Sum]) -> Iterable[CodeRow]:
    total = sum(one.latency for one in sums.values())
    for (kernel, source, instruction, decoded), one in sums.items():
        yield CodeRow(
            kernel=kernel or None,
            source=source or None,
            instruction=instruction or None,
            decoded=decoded,
            share=one.latency / total if total else 0.0,
            hits=one.hits,
            latency_cycles=one.latency,
            stall_cycles=one.stall,
            idle_cycles=one.idle,
        )
