"""rocprofv3's samples of the program counter as CSV (`PID_pc_sampling_host_trap.csv`,
`PID_pc_sampling_stochastic.csv`).

Columns are found by name, whatever their case and order. Instruction_Comment is `file:line`, empty
where the code was built without debug information; a sample of code that the tool could not decode
has no instruction. Exec_Mask has a bit per active lane and up to 64 of them. Stochastic samples
also say whether the wave issued the instruction, and if not, why.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.arrow_csv import CsvColumns, Kind, header_of
from profharness.readers.code.counting import CodeSums, reason_of, source_of
from profharness.readers.code.kernel_names import KernelNames, beside
from profharness.rundir.blocks import read_head
from profharness.trace.code_records import CodeFile, Method
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Problem, Strings

_TAIL = re.compile(r"pc_sampling_\w+?\.csv(?:\.gz)?$")
_HEAD_BYTES = 1 << 14
_NEEDED = ("sample_timestamp", "exec_mask", "instruction", "instruction_comment")
_MAY_BE_EMPTY = ("instruction", "instruction_comment")  # code that the tool could not look up
_ISSUED = "wave_issued_instruction"
_COLUMNS: dict[str, Kind] = {
    "sample_timestamp": "time",
    "dispatch_id": "integer",
    "correlation_id": "integer",
    "exec_mask": "text",
    "instruction": "text",
    "instruction_comment": "text",
    _ISSUED: "text",
    "stall_reason": "text",
}
_KEYS = tuple(name for name in _COLUMNS if name != "sample_timestamp")
_YES = frozenset({"1", "true", "yes"})


def is_samples(head: bytes, name: str) -> bool:
    """Whether a file that begins like this holds samples: by its columns, or by its name."""
    header = header_of(head)
    return "sample_timestamp" in header or (bool(_TAIL.search(name)) and bool(header))


def prefix_of(path: Path) -> str:
    """What the names of all files of the same process begin with; empty where the file was
    renamed.
    """
    return _TAIL.sub("", path.name) if _TAIL.search(path.name) else ""


def read(path: Path) -> CodeFile:
    """The samples of one file by kernel, instruction and line; the kernels' names from the other
    files of the same process beside it.

    Raises InputError for a file without the columns that are needed, which it names, and for one
    that cannot be read.
    """
    header = header_of(read_head(path, _HEAD_BYTES))
    missing = [name for name in _NEEDED if name not in header]
    if not {"dispatch_id", "correlation_id"} & set(header):
        missing.append("dispatch_id")
    if missing:
        raise InputError(
            f"{path} has no column {', '.join(name.title() for name in missing)}: "
            f"its columns are {', '.join(header[:12])}",
            "name a pc_sampling file as rocprofv3 wrote it",
        )
    strings = Strings()
    columns = CsvColumns(path, _COLUMNS, strings, may_be_empty=_MAY_BE_EMPTY)
    blocks = columns.blocks()
    problems = list(columns.problems())
    if not columns.rows and problems:
        raise InputError(f"{path} has no usable row: {problems[0].message}", "copy it again")
    rows = {
        name: np.concatenate([block.integers[name] for block in blocks])
        for name in _KEYS
        if blocks and name in blocks[0].integers
    }
    sums = CodeSums(tells_issue=_ISSUED in header)
    if rows and columns.rows:
        unnamed = _count(rows, strings, beside(path, prefix_of(path)), sums)
        if unnamed:
            problems.append(unnamed_kernels(path, unnamed))
    stochastic = sums.tells_issue or "stochastic" in path.name
    method: Method = "stochastic" if stochastic else "host_trap"
    return CodeFile(str(path), method, sums.records(), tuple(problems))


def unnamed_kernels(path: Path, samples: int) -> Problem:
    """That samples are of dispatches which no file of the same process names."""
    return Problem(
        "warning",
        str(path),
        samples,
        "samples are of kernels that no kernel trace of the same process names: "
        "keep its kernel_trace.csv or results.db beside this file",
    )


def _count(rows: dict[str, I64], strings: Strings, names: KernelNames, sums: CodeSums) -> int:
    """Adds up rows that are alike; the answer is how many are of a kernel without a name."""
    absent = np.full(len(next(iter(rows.values()))), NULL, np.int64)
    keys = [rows.get(name, absent) for name in _KEYS]
    first, place = first_rows(pack(keys))
    counts = np.bincount(place, minlength=len(first))
    unnamed = 0
    for row, count in zip(first.tolist(), counts.tolist(), strict=True):
        values = dict(zip(_KEYS, (int(column[row]) for column in keys), strict=True))
        kernel = names.of(values["dispatch_id"], values["correlation_id"])
        unnamed += 0 if kernel else count
        instruction = _text(strings, values["instruction"])
        source = source_of(instruction, _text(strings, values["instruction_comment"]))
        issued = _text(strings, values[_ISSUED]).lower() in _YES
        reason = reason_of(_text(strings, values["stall_reason"]))
        sums.add(
            (kernel, instruction, source),
            count,
            _mask(_text(strings, values["exec_mask"])),
            None if issued else reason,
        )
    return unnamed


def _text(strings: Strings, code: int) -> str:
    return "" if code == NULL else strings[code]


def _mask(text: str) -> int | None:
    """The mask, in decimal or with 0x; None where it is none."""
    try:
        mask = int(text, 0)
    except ValueError:
        return None
    return mask if 0 <= mask < 1 << 64 else None
