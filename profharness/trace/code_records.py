"""Where time went inside of kernels: what was counted at one instruction of one kernel.

Such records have no place on a time axis, so they are no table of a trace. Two methods make them:
samples of the program counter, taken of waves at intervals, and thread traces, which count each
instruction of one compute unit per shader engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profharness.trace.model import Problem

Method = Literal["host_trap", "stochastic", "thread_trace"]


@dataclass(frozen=True, kw_only=True)
class CodeRecord:
    """All that was counted at instructions of one text, kernel and source line.

    Texts are empty where the file does not say: `kernel` without a kernel trace of the same
    process, `instruction` for code that the tool could not decode, `source` (as `file:line`) for
    kernels that were built without debug information.

    Of samples: `samples`, the lanes that were active in them (`lanes`, summed; of `masked` samples
    that say so), and where the method tells it, in how many the wave issued the instruction
    (`issued`) and why it did not in the others (`stalls`, samples by reason). Of thread traces:
    `hits` executions, and cycles from the instruction before to the end (`latency`), in which the
    hardware could not issue (`stall`), and between instructions (`idle`).
    """

    kernel: str
    instruction: str
    source: str
    samples: int = 0
    lanes: int = 0
    masked: int = 0
    issued: int | None = None
    stalls: tuple[tuple[str, int], ...] = ()
    hits: int = 0
    latency: int = 0
    stall: int = 0
    idle: int = 0


@dataclass(frozen=True)
class CodeFile:
    """What one file says of the code of kernels, and what its reader lost."""

    path: str
    method: Method
    records: tuple[CodeRecord, ...]
    problems: tuple[Problem, ...] = ()
