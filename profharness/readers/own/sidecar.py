"""What a hook wrote beside the tool file that it made: `<file>.profharness.json`.

It says what the tool's own file does not: host, rank, point, the absolute start of times that are
relative, how much of the run the file covers, and the clock readings around each self-check marker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from profharness.errors import InputError
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.limits import Nanoseconds, Rank, Whole
from profharness.rundir.foreign.limits import SIDECAR_BYTES
from profharness.rundir.foreign.records import check_numbers
from profharness.rundir.foreign.small_files import read_file
from profharness.trace.model import (
    FIRST_STEP,
    INTRA_OP_THREADS,
    STEPS,
    THREAD_VARIABLE,
    Problem,
)

SUFFIX = ".profharness.json"
VERSION = 1
PROCESS_ENDED = (
    "the process ended"  # the reason that the hooks give when the program was over first
)


class Window(msgspec.Struct, frozen=True):
    """The stretch of the run that the file covers; `truncated` when a limit ended it early, with
    the `reason`. `lead_in`: the file also holds what came before the first step, which readers
    leave out. `unfinished_step` is the number of the step that the recording ended in, whose range
    stands for a part of it only.
    """

    kind: str = "all"
    first_step: int | None = None
    steps: int | None = None
    truncated: bool = False
    reason: str = ""
    lead_in: bool = False
    unfinished_step: int | None = None


_Text = Annotated[str, msgspec.Meta(max_length=200)]


class Threads(msgspec.Struct, frozen=True):
    """With how many threads torch computed on the CPU, and the variables of OpenMP, MKL and
    OpenBLAS that were set.
    """

    intra_op: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
    variables: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=32)] = {}


class Sidecar(msgspec.Struct, frozen=True):
    """Version 1 of the sidecar. `markers[i]` are the CLOCK_MONOTONIC times (ns) just before and
    after marker i.

    `start_ns` is the CLOCK_REALTIME (ns) that the file's times count from, where they do not hold
    it themselves. In a file of the role `marker`, only the markers are of interest. `groups` are
    the ranks of each process group; `threads` are told by the hook of torch.
    """

    v: int
    file: str = ""
    tool: str = ""
    host: str = ""
    pid: Whole | None = None
    rank: Rank | None = None
    point: str = ""
    clock: str = "realtime"
    start_ns: Nanoseconds | None = None
    role: str = "trace"
    window: Window = Window()
    markers: tuple[tuple[Nanoseconds, Nanoseconds], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    threads: Threads | None = None

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """Entries for `Source.details`: what the window went by, and the threads."""
        return (*self.captured, *self.threading)

    @property
    def captured(self) -> tuple[tuple[str, str], ...]:
        """Entries for `Source.details` where the window went by steps; empty else."""
        if self.window.first_step is None or not self.window.steps:
            return ()
        return (FIRST_STEP, str(self.window.first_step)), (STEPS, str(self.window.steps))

    @property
    def threading(self) -> tuple[tuple[str, str], ...]:
        """Entries for `Source.details` of the threads; empty where they are not known."""
        if self.threads is None:
            return ()
        variables = sorted(self.threads.variables.items())
        return (
            (INTRA_OP_THREADS, str(self.threads.intra_op)),
            *((f"{THREAD_VARIABLE}{name}", text) for name, text in variables),
        )


def load(trace_file: Path) -> Sidecar | None:
    """The sidecar of a trace file, None where there is none. Raises InputError for one that is
    damaged or of a newer version.
    """
    path = trace_file.with_name(trace_file.name + SUFFIX)
    try:
        sidecar = msgspec.json.decode(read_file(path, SIDECAR_BYTES), type=Sidecar)
    except FileNotFoundError:
        return None
    except (OSError, *NOT_JSON) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            "the hook was interrupted; remove the file to go without it",
        ) from error
    check_numbers(sidecar, str(path))
    if sidecar.v > VERSION:
        raise InputError(
            f"{path} is of version {sidecar.v}, newer than {VERSION}", "update profharness"
        )
    return sidecar


def load_or_report(trace_file: Path) -> tuple[Sidecar, list[Problem]]:
    """The sidecar, or an empty one, and what the reader of the trace must pass on: damage, or a
    window that was cut.
    """
    try:
        sidecar = load(trace_file)
    except InputError as error:
        return Sidecar(VERSION), [Problem("warning", str(trace_file), 1, error.message)]
    if sidecar is None:
        return Sidecar(VERSION), []
    if sidecar.window.truncated:
        reason = f": {sidecar.window.reason}" if sidecar.window.reason else ""
        # a program that is over before its window is has lost nothing
        return sidecar, [
            Problem(
                "info" if sidecar.window.reason == PROCESS_ENDED else "warning",
                str(trace_file),
                1,
                f"the capture window ended early{reason}",
            )
        ]
    return sidecar, []
