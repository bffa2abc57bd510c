"""The hooks' record of what Python did on the host: `host-<pid>.jsonl`, one JSON object per line
(docs/run-directory.md#host-records), with garbage collections and samples of a thread's lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.limits import LATEST_NS, Nanoseconds, Whole
from profharness.readers.own.lines import lines_of, pid_of
from profharness.trace.columns.stacks import Frame, text_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I64,
    ClockDomain,
    HostSamples,
    Marks,
    Problem,
    Source,
    Strings,
    Trace,
)

FORMAT = "host"
SHORT_COUNT, SHORT_NS = "gc.short.count", "gc.short.ns"
"""Entries of `Source.details`: how many garbage collections were too short to be listed one by one,
and how long they took together.
"""
_DEPTH = 64
_LINE_BYTES = 1 << 20
_ROWS = 2_000_000
_TEXTS = 32 << 20
"""Bounds of what the hook writes: 60 frames, lines of 64 KiB, a file of 64 MiB with some million of
samples. Stacks repeat; their texts together take as much as those of 100,000 different ones.
"""
_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Length = Annotated[int, msgspec.Meta(ge=0, le=LATEST_NS)]
_Small = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_FIELDS = 4


class _Samples(msgspec.Struct, frozen=True):
    """Samples of thread `tid` by differences to the one before: time, stack, processor time, delay,
    and so on in turn. The first differs from `at_ns` and `cpu_ns`.
    """

    tid: Whole
    at_ns: Nanoseconds
    rows: tuple[_Length, ...]
    cpu_ns: _Length | None = None


class _Line(msgspec.Struct, frozen=True):
    """One line, of which one field is given.

    `file` and `frame` and `stack` number what others refer to: a file; a line of a file with its
    function; a frame and the number of the stack that called it (-1: none). `gc` holds collections
    as start, duration, generation, objects found and thread; `gc_short` the sums of shorter ones as
    from, until, number, duration and thread; `cut` how many of each kind the bounds left out.
    """

    v: int = 1
    clock: str = ""
    pass_name: _Text = ""
    file: tuple[_Small, _Text] | None = None
    frame: tuple[_Small, _Small, _Small, _Text] | None = None
    stack: tuple[_Small, Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)], _Small] | None = None
    samples: _Samples | None = None
    gc: tuple[tuple[Nanoseconds, _Length, _Small, _Length, Whole], ...] = ()
    gc_short: tuple[tuple[Nanoseconds, Nanoseconds, _Length, _Length, Whole], ...] = ()
    cut: dict[_Text, _Length] = {}


_LINE = msgspec.json.Decoder(_Line)


def read(path: Path) -> Trace:
    """Marks of kind gc, and samples of threads. Raises InputError when the file cannot be read; cut
    lines are counted as a problem.
    """
    found = _Found()
    for text in lines_of(path):
        found.add(text)
    strings, pid = Strings(), pid_of(path)
    source = Source(
        path=str(path),
        format=FORMAT,
        clock=ClockDomain.BOOTTIME,
        pid=pid if pid != NULL else None,
        pass_name=found.pass_name,
        has_host_calls=False,
        details=(
            ((SHORT_COUNT, str(found.short_count)), (SHORT_NS, str(found.short_ns)))
            if found.short_count
            else ()
        ),
    )
    marks, samples = _marks(found, strings, pid), _samples(found, strings, pid)
    return Trace(
        sources=(source,),
        strings=strings,
        marks=marks,
        host_samples=samples,
        problems=tuple(found.problems(str(path))),
    )


@dataclass
class _Found:
    """What the lines said, one after another."""

    pass_name: str = ""
    files: dict[int, str] = field(default_factory=dict)
    frames: dict[int, Frame] = field(default_factory=dict)
    stacks: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    samples: list[_Samples] = field(default_factory=list)
    collections: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    short_count: int = 0
    short_ns: int = 0
    rows: int = 0
    damaged: int = 0
    unnamed: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def add(self, text: bytes) -> None:
        """Take up a line; one that is cut, or refers to what no line before it has, is damaged."""
        try:
            line = _LINE.decode(text) if len(text) <= _LINE_BYTES else None
        except NOT_JSON:
            line = None
        if line is None or line.v > 1 or not self._take(line):
            self.damaged += 1

    def _take(self, line: _Line) -> bool:
        self.pass_name = line.pass_name or self.pass_name
        if line.file is not None:
            self.files[line.file[0]] = line.file[1]
        if line.frame is not None and not self._frame(*line.frame):
            return False
        if line.stack is not None and not self._stack(*line.stack):
            return False
        if line.samples is not None and not self._rows(line.samples):
            return False
        self.rows += len(line.gc)
        if self.rows > _ROWS:
            return False
        self.collections += line.gc
        for _, _, count, lasted, _ in line.gc_short:
            self.short_count += count
            self.short_ns += lasted
        for kind, count in line.cut.items():
            self.left_out[kind] = self.left_out.get(kind, 0) + count
        return True

    def _frame(self, number: int, file: int, line: int, function: str) -> bool:
        if file not in self.files:
            return False
        self.frames[number] = Frame(self.files[file], line, function)
        return True

    def _stack(self, number: int, caller: int, frame: int) -> bool:
        """`caller` is known already, so that no stack calls itself."""
        depth = self.stacks[caller][2] + 1 if caller in self.stacks else 1
        if (caller != NULL and depth == 1) or frame not in self.frames or depth > _DEPTH:
            return False
        if number in self.stacks:
            return False
        self.stacks[number] = (caller, frame, depth)
        return True

    def _rows(self, samples: _Samples) -> bool:
        count, rest = divmod(len(samples.rows), _FIELDS)
        latest = samples.at_ns + sum(samples.rows[::_FIELDS])
        spent = (samples.cpu_ns or 0) + sum(samples.rows[2::_FIELDS])
        if rest or max(latest, spent) > LATEST_NS or self.rows + count > _ROWS:
            return False
        self.rows += count
        self.samples.append(samples)
        return True

    def text(self, number: int) -> str:
        """The text of a stack; empty where no line told it."""
        frames = []
        while number in self.stacks:
            number, frame, _ = self.stacks[number]
            frames.append(self.frames[frame])
        return text_of(frames)

    def problems(self, path: str) -> Iterator[Problem]:
        """What the lines did not tell, in sentences."""
        if self.damaged:
            yield Problem(
                "warning",
                path,
                self.damaged,
                "lines of the record of Python's work were cut or damaged and left out",
            )
        if self.unnamed:
            yield Problem("warning", path, self.unnamed, "samples of Python name no known stack")
        names = {"gc": "garbage collections", "samples": "samples of Python"}
        for kind in sorted(self.left_out.keys() & names.keys()):
            if self.left_out[kind]:
                yield Problem(
                    "info",
                    path,
                    self.left_out[kind],
                    f"{names[kind]} came after the bound of their record and are not in it",
                )


def _marks(found: _Found, strings: Strings, pid: int) -> Marks:
    if not found.collections:
        return Marks.empty()
    rows = np.array(sorted(found.collections), np.int64)
    return Marks.build(
        len(rows),
        start_ns=rows[:, 0],
        dur_ns=rows[:, 1],
        kind=strings.code("gc"),
        name=strings.codes(
            f"garbage collection, generation {generation}" for generation in rows[:, 2].tolist()
        ),
        pid=pid,
        tid=rows[:, 4],
        source=0,
    )


def _samples(found: _Found, strings: Strings, pid: int) -> HostSamples:
    if not found.rows or not found.samples:
        return HostSamples.empty()
    codes, texts = {}, 0
    for number in sorted({number for one in found.samples for number in one.rows[1::_FIELDS]}):
        text = found.text(number)
        texts += len(text)
        codes[number] = strings.code(text) if text and texts <= _TEXTS else NULL
    parts = [_columns(one, codes) for one in found.samples]
    columns = {
        name: np.concatenate([part[name] for part in parts])
        for name in ("at_ns", "tid", "stack", "cpu_ns", "delay_ns")
    }
    found.unnamed = int(np.count_nonzero(columns["stack"] == NULL))
    order = np.argsort(columns["at_ns"], kind="stable")
    return HostSamples.build(
        len(order), **{name: values[order] for name, values in columns.items()}, pid=pid, source=0
    )


def _columns(one: _Samples, codes: dict[int, int]) -> dict[str, I64]:
    rows: Sequence[int] = one.rows
    count = len(rows) // _FIELDS
    cpu = (
        np.full(count, NULL, np.int64)
        if one.cpu_ns is None
        else np.array(list(accumulate(rows[2::_FIELDS], initial=one.cpu_ns))[1:], np.int64)
    )
    return {
        "at_ns": np.array(list(accumulate(rows[::_FIELDS], initial=one.at_ns))[1:], np.int64),
        "tid": np.full(count, one.tid, np.int64),
        "stack": np.array([codes[number] for number in rows[1::_FIELDS]], np.int64),
        "cpu_ns": cpu,
        "delay_ns": np.array(rows[3::_FIELDS], np.int64),
    }
