"""Which of the program's Python lines the time outside of operators went to, by the samples that
the hook beside torch takes of its thread (docs/metrics.md#what-the-host-did). What py-spy samples
has tables of its own (`line_tables`).

The samples share out all of the time that they follow, and no part is counted twice: each speaks
for the gap between two operators that it lies in (`gaps`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from profharness.analysis.host.gaps import Gaps, Pieces, pieces, shared
from profharness.analysis.host.kinds import writes
from profharness.trace.columns.stacks import Frame, frames_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.parts.sampled import told_since

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SampledPart:
    """One place of the program: `ns` of the time that was asked for, the number of samples that saw
    it, and how much of that time the thread ran on a core (None: not known). `writes`: it was in
    what a library does to write logs or files.
    """

    name: str
    writes: bool
    ns: int
    samples: int
    running_ns: int | None


@dataclass(frozen=True, eq=False)
class ThreadSamples:
    """The samples of one thread in order of time; see `trace.model.HostSamples` for the columns."""

    at: I64
    delay: I64
    cpu: I64
    stack: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.at)


def of_thread(trace: Trace, recording: I64, owner: tuple[int, int, int]) -> ThreadSamples:
    """The samples of a thread, given by recording, process and thread id."""
    table = trace.host_samples
    wanted, pid, tid = owner
    mine = np.flatnonzero((table.pid == pid) & (table.tid == tid) & (table.stack != NULL))
    mine = mine[recording[table.source[mine]] == wanted]
    mine = mine[np.argsort(table.at_ns[mine], kind="stable")]
    return ThreadSamples(
        table.at_ns[mine], table.delay_ns[mine], table.cpu_ns[mine], table.stack[mine]
    )


def share_out(trace: Trace, samples: ThreadSamples, gaps: Gaps) -> list[SampledPart]:
    """The time of the gaps between a thread's operators shared out among the places that its
    samples saw, the largest first. What follows a pause of the sampler is left out.

    A gap without a sample is shared out as those between the same operators that have one; where
    none of them has, its place is that of the nearest sample.
    """
    if len(samples) < 2:
        return []
    since = told_since(samples.at, samples.delay)
    told = pieces(samples.at, since, _held_up(samples), gaps.held)
    running = _running(samples, told)
    places = {
        int(code): place_of(frames_of(trace.strings[int(code)]))
        for code in np.unique(samples.stack[told.sample])
    }
    stacks, alike = samples.stack[told.sample], gaps.alike[told.gap]
    seen = _seen_in_alike(stacks, alike, told)
    found: dict[tuple[Spot, bool], _Sum] = {}
    for at in range(len(told.ns)):
        codes = {int(stacks[at]): 1}
        if not told.hit[at]:
            codes = seen.get(int(alike[at]), codes)
        weights = list(codes.values())
        ns, ran = shared(int(told.ns[at]), weights), shared(int(running[at]), weights)
        for code, of_code, ran_there in zip(codes, ns, ran, strict=True):
            place = places[code]
            key = place.spot, place.writes
            found.setdefault(key, _Sum()).add(place, of_code, min(ran_there, of_code))
            found[key].samples.add(int(told.sample[at]) if stacks[at] == code else NULL)
    known = bool((samples.cpu != NULL).all())
    return [
        SampledPart(one.name(spot), writes, one.ns, one.seen, one.running if known else None)
        for (spot, writes), one in sorted(found.items(), key=lambda item: (-item[1].ns, item[0]))
    ]


def _seen_in_alike(
    stacks: npt.NDArray[np.int32], alike: I64, told: Pieces
) -> dict[int, Counter[int]]:
    """How long each stack was seen in the gaps of each kind that a sample lies in, ns."""
    seen: dict[int, Counter[int]] = {}
    for at in np.flatnonzero(told.hit & (alike != NULL)).tolist():
        seen.setdefault(int(alike[at]), Counter())[int(stacks[at])] += int(told.ns[at])
    return seen


def _held_up(samples: ThreadSamples) -> I64:
    """How long code of the thread may have held each sample up: its delay, at most the time that
    the thread ran. A thread that sleeps holds nothing up.
    """
    late = np.maximum(samples.delay, 0)
    if (samples.cpu == NULL).any():
        return late
    ran = np.diff(samples.cpu, prepend=samples.cpu[:1])
    return np.asarray(np.minimum(late, np.maximum(ran, 0)), np.int64)


@dataclass
class _Sum:
    """What one spot has been seen for so far; of its lines and of what they called, how long."""

    ns: int = 0
    running: int = 0
    samples: set[int] = field(default_factory=set)
    lines: Counter[int] = field(default_factory=Counter)
    called: Counter[str] = field(default_factory=Counter)

    def add(self, place: Place, ns: int, running: int) -> None:
        self.ns += ns
        self.running += running
        self.lines[place.line] += ns
        self.called[place.called] += ns

    @property
    def seen(self) -> int:
        """How many samples saw it."""
        return len(self.samples - {NULL})

    def name(self, spot: Spot) -> str:
        """`train.py:31 tokenise`, by the line that was seen longest; `train.py:40 > logging.debug`
        where one call of a library takes at least half of the time.
        """
        file = spot.file.replace(chr(92), "/").rpartition("/")[2]
        function = f" {spot.function}" if spot.function else ""
        called, of_call = self.called.most_common(1)[0]
        behind = f" > {called}" if called and 2 * of_call >= self.ns else ""
        return f"{file}:{self.lines.most_common(1)[0][0]}{function}{behind}"


def _running(samples: ThreadSamples, told: Pieces) -> I64:
    """The thread's time on a core in each piece, as much of it as of the whole distance between the
    samples around it.
    """
    whole = np.maximum(np.diff(samples.at), 1)
    taken = np.clip(np.diff(samples.cpu), 0, whole)
    share = (taken / whole)[told.until - 1]
    return np.asarray(np.minimum(np.rint(share * told.ns), told.ns), np.int64)


class Spot(NamedTuple):
    """A function of the program; outside of any, one of its lines."""

    file: str
    function: str
    line: int


class Place(NamedTuple):
    """Where a stack stands: the spot, the line in it, what it called in a library, and whether it
    is in one that writes logs or files.
    """

    spot: Spot
    line: int
    called: str
    writes: bool


def place_of(frames: tuple[Frame, ...]) -> Place:
    """The place of the program that a stack stands for: the innermost frame that is not of Python's
    own or an installed library; of a stack without one the innermost frame.
    """
    own = next((at for at, frame in enumerate(frames) if not is_library(frame.file)), 0)
    frame = frames[own] if frames else Frame("?", 0, "")
    called = f"{_module(frames[own - 1].file)}.{frames[own - 1].function}" if own else ""
    at_top = frame.function == "<module>"
    spot = Spot(frame.file, "" if at_top else frame.function, frame.line if at_top else 0)
    # also what the program does for such a library: a handler or a stream of its own
    writing = any(writes(f"{one.file}({one.line}): {one.function}") for one in frames)
    return Place(spot, frame.line, called, writing)


def is_library(file: str) -> bool:
    """Whether a file is Python's own or of an installed package, by its path."""
    path = file.replace("\\", "/")
    return (
        path.startswith("<")
        or "/site-packages/" in path
        or "/dist-packages/" in path
        or "/lib/python3" in path
    )


def _module(file: str) -> str:
    """`logging` of `.../logging/__init__.py`, `serialization` of `torch/serialization.py`."""
    parts = file.replace("\\", "/").removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
