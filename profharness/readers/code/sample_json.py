"""Samples of the program counter in rocprofv3's JSON file (`*_results.json`), which holds the
kernels of the same process too.

A sample names its instruction by its place in the file's own lists of instructions and comments;
-1 stands for code that the tool could not decode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.readers.bytes.json_walk import DocumentEnds, JsonWalk
from profharness.readers.code.counting import CodeSums, reason_of, source_of
from profharness.readers.code.sample_csv import unnamed_kernels
from profharness.readers.rocprofv3.json_reader import KEY
from profharness.readers.rocprofv3.json_records import Correlation, Dispatch, Symbol
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace.code_records import CodeFile, Method
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem

_METHODS: dict[str, Method] = {
    "pc_sample_host_trap": "host_trap",
    "pc_sample_stochastic": "stochastic",
}


class _Snapshot(msgspec.Struct, frozen=True):
    stall_reason: str | int = ""


class _Sampled(msgspec.Struct):
    dispatch_id: int = NULL
    exec_mask: int | None = None
    correlation_id: Correlation = Correlation()
    wave_issued: int | bool = 0
    snapshot: _Snapshot = _Snapshot()


class _Sample(msgspec.Struct):
    record: _Sampled
    inst_index: int = NULL


class _Names(msgspec.Struct):
    pc_sample_instructions: list[str] = []
    pc_sample_comments: list[str] = []


# dispatch, instruction, mask, issued, reason
_Key = tuple[int, int, int | None, bool, str]


@dataclass
class _Process:
    """One process of the file: its samples, alike ones added up, and what its numbers stand for."""

    names: _Names = field(default_factory=_Names)
    symbols: dict[int, str] = field(default_factory=dict)
    kernels: dict[int, int] = field(default_factory=dict)
    samples: dict[Method, Counter[_Key]] = field(default_factory=dict)
    unreadable: int = 0

    def read(self, part: str, walk: JsonWalk) -> None:
        """Use up one value of the process object."""
        if part == "strings":
            self.names = walk.value(_Names)
        elif part == "kernel_symbols":
            for symbols in walk.batches(Symbol):
                for symbol in symbols:
                    name = symbol.formatted_kernel_name or symbol.kernel_name.removesuffix(".kd")
                    self.symbols[symbol.kernel_id] = name
        elif part == "buffer_records":
            for kind in walk.members():
                self._records(kind, walk)
        else:
            walk.skip()

    def _records(self, kind: str, walk: JsonWalk) -> None:
        if kind == "kernel_dispatch":
            for dispatches in walk.batches(Dispatch):
                for dispatch in dispatches:
                    info = dispatch.dispatch_info
                    self.kernels[info.dispatch_id] = info.kernel_id
        elif kind in _METHODS:
            counts = self.samples.setdefault(_METHODS[kind], Counter())
            before = walk.unreadable
            try:
                for samples in walk.batches(_Sample):
                    counts.update(_key(sample) for sample in samples)
            finally:
                self.unreadable += walk.unreadable - before
        else:
            walk.skip()

    def count(self, method: Method, sums: CodeSums) -> int:
        """Adds the samples of one method; the answer is how many are of a kernel without a name."""
        unnamed = 0
        for (dispatch, index, mask, issued, reason), count in self.samples[method].items():
            kernel = self.symbols.get(self.kernels.get(dispatch, NULL), "")
            unnamed += 0 if kernel else count
            instruction = _at(self.names.pc_sample_instructions, index)
            source = source_of(instruction, _at(self.names.pc_sample_comments, index))
            sums.add((kernel, instruction, source), count, mask, None if issued else reason)
        return unnamed


def read(path: Path) -> tuple[CodeFile, ...]:
    """The samples of one file, a part per method; none where it holds no samples. Raises InputError
    for a file that cannot be read.
    """
    walk = JsonWalk(path, BLOCK_BYTES)
    processes: list[_Process] = []
    damage = ""
    try:
        for key in walk.members():
            if key != KEY:
                walk.skip()
                continue
            for _ in walk.elements():
                processes.append(_Process())
                for part in walk.members():
                    processes[-1].read(part, walk)
    except DocumentEnds as end:
        damage = walk.damage or str(end)
    read_any = any(any(one.samples.values()) for one in processes)
    if damage and not read_any:
        raise InputError(f"{path} is cut or damaged: {damage}", "record or copy it again")
    unreadable = sum(one.unreadable for one in processes)
    if unreadable and not read_any:
        raise InputError(
            f"{path} holds no readable sample: {unreadable} are not as expected "
            f"(first: {walk.first_error})",
            "record or copy it again",
        )
    said = tuple(_of_file(path, damage, unreadable, walk.first_error))
    parts = (_of_method(path, method, processes, said) for method in _METHODS.values())
    return tuple(part for part in parts if part is not None)


def _of_file(path: Path, damage: str, unreadable: int, first_error: str) -> Iterator[Problem]:
    if damage:
        yield Problem("error", str(path), 1, f"the file is cut or damaged: {damage}")
    if unreadable:
        message = f"samples are not readable and were left out (first: {first_error})"
        yield Problem("warning", str(path), unreadable, message)


def _of_method(
    path: Path, method: Method, processes: list[_Process], problems: tuple[Problem, ...]
) -> CodeFile | None:
    sums = CodeSums(tells_issue=method == "stochastic")
    unnamed = sum(one.count(method, sums) for one in processes if method in one.samples)
    records = sums.records()
    if unnamed:
        problems = (*problems, unnamed_kernels(path, unnamed))
    return CodeFile(str(path), method, records, problems) if records else None


def _key(sample: _Sample) -> _Key:
    record = sample.record
    reason = reason_of(str(record.snapshot.stall_reason))
    issued = bool(record.wave_issued)
    return record.dispatch_id, sample.inst_index, record.exec_mask, issued, "" if issued else reason


def _at(texts: list[str], index: int) -> str:
    return texts[index] if 0 <= index < len(texts) else ""
