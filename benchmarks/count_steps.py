"""Counts the steps of Kineto traces anew, to compare with what profharness says: `python
benchmarks/count_steps.py FILE ... [--against CHECKOUT]`.

It uses none of profharness' code: the file is read as plain JSON, times are whole nanoseconds, and
every rule is written down here. With `--against` it asks `CHECKOUT/.venv/bin/profharness metrics
FILE --json` of each file, and ends with 1 where a window, a part of it, the step time, steps per
second or kernels per step differ by a nanosecond or a rounding of a float.

*Times* are decimal microseconds, taken exactly and rounded to nanoseconds (half to even). A record
with the times 0 and 0 has none: it lies in no window and ends no step, but was launched. A kernel
that holds a whole later one of its own stream, which another call launched, has a start and no
length, unless they overlap by two microseconds at most.

*Marks.* A step mark is a complete event of `user_annotation` (files of 2021: an operator) named
`ProfilerStep#...` or `profharness.step:...`. Marks of one process (pid) are a sequence in order of
their begins a(i); b(i) are their ends. Marks named `profharness.trial:...` are trials, and are
taken in place of steps where there are any.

*Launches.* Work (kernels, copies, fills) belongs to the call with its correlation, which is above
zero; of several calls to the one named as a launch, then the first, then the longest. All kernels
of a graph have the correlation of the one call that launched it. A call belongs to the mark of its
process with a(i) <= start of the call < b(i), whichever thread made it; of several to the one that
began last. Where one process marks and one process calls, they are the same, whatever their ids say
(inside and outside of a container they differ).

*Steps.* S(i) and E(i) are the first start and the last end of the work on a device that was
launched inside of mark i.

1. A step ends at the later of E(i) and the end of the step before. Where it launches on other
   devices only, it ends when it ends there.
2. It begins where the step before it ended, if its mark adjoins those before: a(i) lies at most a
   tenth of the median length of the marks behind the last of their ends. Else it begins at the
   latest of a(i), the end of the step before, and the end of what the process launched in between,
   but no later than it ends; a(i) after S(i) shows clocks that disagree and is replaced by S(i).
   From the end of the step before to this begin the time is "between steps".
3. The first step that is recorded begins at the end of earlier work, if that lies after a(0) and
   before E(0). Earlier work was launched before a(0), or has no recorded launch and begins before
   the first work of its stream that has one (before S(0), if none has). Else the step begins at its
   mark if the host is usually late and the mark is no later than S(0). Late is the host if the
   first launch of a step begins no earlier than the step before ends, in more than half of all
   pairs of neighbours that launch something there; of a single step, if its work ends no later than
   its mark. Else the step begins at S(0) and has no length.
4. Steps that launch nothing count with no length between steps that launch something, and not at
   all before the first and behind the last of these. S(0) and E(i) of a step that launches on other
   devices only are those of the other devices.

*Steady* are the steps from the first one that is not too long: a length is too long above the
median by five standard deviations (from the median absolute deviation) and by a tenth; two steps
always stay. A first step without a length goes where the second is too long, or where it took
longer than that limit from S(0) to E(0). Of several devices the mean of the lengths counts, of
those that the step launched work on (of all where it launched nothing). A process whose lengths are
all 0, because earlier work outlives its steps, has no step time and no rate, and where the median
length is 0 there is no step time.

*The window* of a device runs from the begin of the first steady step to the end of the last. Where
several processes work on a device it is what their windows have in common (all of them, if that is
nothing); a device on which no steady step launches anything has what the windows of all others have
in common. Step time is the median of the lengths, steps per second their number over their sum (the
mean over the processes), kernels per step those that the steady steps launched over the number of
these steps.

*The partition* of a window: compute is the union of kernels that are no collectives, exposed
communication what collectives add to it, exposed copy what copies and fills add to both, idle the
rest. Windows and parts of several devices are added.

*Marks hold* in place of steps, with kernels that start inside of them, for trials, and where no
step launches anything with a time. A process has no steps if more kernels without a recorded launch
(earlier work apart) end after its steps begin than they launched. Where no work lies inside of the
marks, or there are none, the window is all device work.
"""

from __future__ import annotations

import argparse
import bisect
import gzip
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMPUTE, TALK, COPY = "compute", "communication", "copy"
WORK = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
CALLS = {
    "cuda_runtime",
    "cuda_driver",
    "Runtime",
    "xpu_runtime",
    "mtia_runtime",
    "privateuse1_runtime",
}
RANGES = {"user_annotation", "cpu_op", "Operator"}
COLLECTIVE = re.compile(
    r"^_?(nccl|rccl|msccl)|ncclDevKernel|ncclKernel|[Aa]ll_?[Rr]educe|[Aa]ll_?[Gg]ather"
    r"|[Rr]educe_?[Ss]catter|cross_device_reduce|nvshmem|rocshmem|deep_ep"
)
TELLING = re.compile(r"(step|iteration|iter)[ _:#-]{0,2}(\d+)", re.ASCII | re.IGNORECASE)
ADJOINS = 10  # marks with at most this part of their median length between them
STEADY_SIGMA, MAD_TO_SIGMA, STEADY_PART = 5, 1.4826, 0.1
NEVER = -(2**63)
SMALL_OVERLAP_NS = 2000  # kernels of one stream overlap by so much, in whole microseconds
Spans = list[tuple[int, int]]


# the file


@dataclass(frozen=True)
class Mark:
    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Call:
    process: int
    start: int
    preference: tuple[bool, int, int]
    """Of several calls with one correlation that with the least."""


@dataclass(frozen=True)
class Work:
    device: str
    stream: str
    kind: str
    start: int
    end: int
    correlation: int
    call: Call | None

    @property
    def timed(self) -> bool:
        return bool(self.start or self.end)

    @property
    def kernel(self) -> bool:
        return self.kind != COPY


@dataclass
class Recording:
    work: list[Work] = field(default_factory=list)
    marks: dict[int, list[Mark]] = field(default_factory=dict)
    """By process, in order."""
    trials: bool = False


def nanoseconds(value: Any) -> int | None:
    """Of a number of microseconds; None for what is none."""
    try:
        return int((Decimal(value) * 1000).to_integral_value(ROUND_HALF_EVEN))
    except (InvalidOperation, TypeError, ValueError, OverflowError):
        return None


def integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return -1


def spans_of(events: Iterable[dict[str, Any]]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for event in events:
        if event.get("ph") == "X" and (start := nanoseconds(event.get("ts"))) is not None:
            yield start, start + max(nanoseconds(event.get("dur")) or 0, 0), event


def read(path: Path) -> Recording | None:
    """None for what is no trace of Kineto."""
    data = path.read_bytes()
    try:
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
        document = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    listed = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(listed, list) or not any(
        isinstance(event, dict) and event.get("cat") in WORK | CALLS for event in listed
    ):
        return None
    events = [event for event in listed if isinstance(event, dict)]
    if any(event.get("cat") in ("Node", "Session") for event in events):
        return None  # onnxruntime's
    recording = Recording()
    calls = calls_of(events)
    for start, end, event in spans_of(events):
        if event.get("cat") in WORK:
            recording.work.append(work_of(event, start, end, calls))
    recording.work = believed(recording.work)
    read_marks(recording, events)
    return recording


def calls_of(events: list[dict[str, Any]]) -> dict[int, Call]:
    calls: dict[int, Call] = {}
    for start, end, event in spans_of(events):
        correlation = integer((event.get("args") or {}).get("correlation"))
        if event.get("cat") in CALLS and correlation > 0:
            preference = ("Launch" not in event["name"], start, start - end)
            if correlation not in calls or preference < calls[correlation].preference:
                calls[correlation] = Call(integer(event.get("pid")), start, preference)
    return calls


def work_of(event: dict[str, Any], start: int, end: int, calls: dict[int, Call]) -> Work:
    args = event.get("args") or {}
    kind = COPY
    if event["cat"] in ("kernel", "Kernel"):
        kind = TALK if COLLECTIVE.search(function(str(event.get("name")))) else COMPUTE
    device, stream = args.get("device"), args.get("stream")
    return Work(
        str(event.get("pid") if device is None else device),
        str(event.get("tid") if stream is None else stream),
        kind,
        start,
        end,
        correlation := integer(args.get("correlation")),
        calls.get(correlation),
    )


def believed(work: list[Work]) -> list[Work]:
    """The same, where a kernel that holds a whole later one of its stream has no length."""
    streams: dict[tuple[str, str], list[tuple[int, Work]]] = defaultdict(list)
    for place, one in enumerate(work):
        if one.kernel and one.timed and (one.call or one.correlation > 0):
            streams[one.device, one.stream].append((place, one))
    found = list(work)
    for kernels in streams.values():
        kernels.sort(key=lambda pair: pair[1].start)
        for number, (place, one) in enumerate(kernels):
            for _, after in itertools.islice(kernels, number + 1, None):
                if after.start >= one.end - SMALL_OVERLAP_NS:
                    break
                if after.end <= one.end and after.correlation != one.correlation:
                    found[place] = replace(one, end=one.start)
                    break
    return found


def function(name: str) -> str:
    """The function of a kernel's name, without its type, template arguments and parameters."""
    name, kept, depth = name.replace("(anonymous namespace)::", ""), "", 0
    for letter in name:
        if letter == "(" and depth == 0 and kept and not kept.endswith(" "):
            break
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept += letter
    return kept.strip().rpartition(" ")[2] or name


def read_marks(recording: Recording, events: list[dict[str, Any]]) -> None:
    named: dict[str, list[tuple[int, Mark]]] = {"trial": [], "step": [], "told": []}
    for start, end, event in spans_of(events):
        name = str(event.get("name"))
        if event.get("cat") not in RANGES:
            continue
        kind = "told" if event["cat"] == "user_annotation" and TELLING.fullmatch(name) else ""
        if name.startswith(("ProfilerStep#", "profharness.step:")):
            kind = "step"
        elif name.startswith("profharness.trial:"):
            kind = "trial"
        if kind:
            named[kind].append((integer(event.get("pid")), Mark(start, end, name)))
    recording.trials = bool(named["trial"])
    told = named["told"] if beyond_doubt(named["told"]) else []
    for process, mark in named["trial"] or named["step"] or told:
        recording.marks.setdefault(process, []).append(mark)
    for marks in recording.marks.values():
        marks.sort(key=lambda mark: (mark.start, -mark.end))


def beyond_doubt(told: list[tuple[int, Mark]]) -> bool:
    """Whether ranges of the program are its steps: `step 3`, `iteration 3`, `iter 3`, of one word,
    one after the other with growing numbers.
    """
    found = [(process, mark, TELLING.fullmatch(mark.name)) for process, mark in told]
    if len(found) < 2 or len({match[1].lower() for *_, match in found if match}) > 1:
        return False
    by_process = defaultdict(list)
    for process, mark, match in found:
        by_process[process].append((mark.start, mark.end, int(match[2]) if match else 0))
    return all(
        before[1] <= after[0] and before[2] < after[2]
        for marks in map(sorted, by_process.values())
        for before, after in itertools.pairwise(marks)
    )


# steps


@dataclass
class Chain:
    """The steps of one process on one device."""

    begin: list[int]
    end: list[int]
    apart: list[int]
    """What lies between a step and the one before."""
    launches: list[bool]
    """Whether a step launched work of this device."""
    first_has_length: bool = True

    def lengths(self) -> list[int | None]:
        found: list[int | None] = [
            end - begin for begin, end in zip(self.begin, self.end, strict=True)
        ]
        if not self.first_has_length:
            found[0] = None
        return found


@dataclass(frozen=True)
class Process:
    """One process: its marks from the first to the last that launches something."""

    marks: list[Mark]
    launched: list[list[Work]]
    """By mark."""
    behind: list[list[Work]]
    """By mark: launched between the mark before and this one."""
    pids: frozenset[int]
    """Its own, as marks and as calls give it."""

    def holds(self, work: Work) -> bool:
        return work.call is not None and work.call.process in self.pids

    def own(self, device: str) -> list[list[Work]]:
        return [
            [one for one in work if one.device == device and one.timed] for work in self.launched
        ]


def process_of(recording: Recording, pid: int) -> Process | None:
    """None where it launches nothing inside of its marks."""
    marks = recording.marks[pid]
    calling = {work.call.process for work in recording.work if work.call}
    alone = len(recording.marks) == len(calling) == 1
    pids = frozenset(calling if alone else {pid})
    starts = [mark.start for mark in marks]
    launched: list[list[Work]] = [[] for _ in marks]
    behind: list[list[Work]] = [[] for _ in marks]
    for work in recording.work:
        if work.call is None or work.call.process not in pids:
            continue
        last = bisect.bisect_right(starts, work.call.start) - 1
        held = next((i for i in range(last, -1, -1) if work.call.start < marks[i].end), None)
        if held is not None:
            launched[held].append(work)
        elif 0 <= last < len(marks) - 1 and work.timed:
            behind[last + 1].append(work)
    launching = [number for number, work in enumerate(launched) if any(one.timed for one in work)]
    if not launching:
        return None
    kept = slice(launching[0], launching[-1] + 1)
    return Process(marks[kept], launched[kept], behind[kept], pids)


def is_late(process: Process, own: list[list[Work]], end: list[int]) -> bool:
    pairs = [
        min(one.call.start for one in after if one.call) >= end[number]
        for number, (before, after) in enumerate(itertools.pairwise(own))
        if before and after
    ]
    return 2 * sum(pairs) > len(pairs) if pairs else end[0] <= process.marks[0].end


def chain_of(recording: Recording, process: Process, device: str, usual: float) -> Chain:
    """`usual` is the median length of the marks."""
    own, marks = process.own(device), process.marks
    anywhere = [[one for one in work if one.timed] for work in process.launched]
    began = [
        min((one.start for one in here or all_), default=None)
        for here, all_ in zip(own, anywhere, strict=True)
    ]
    begin: list[int] = []
    end: list[int] = []
    apart: list[int] = []
    reached = marks[0].end
    for number, mark in enumerate(marks):
        before = end[-1] if end else NEVER
        end.append(max([before, *(one.end for one in own[number] or anywhere[number])]))
        begin.append(before)
        apart.append(0)
        if number and ADJOINS * (mark.start - reached) > usual:
            first = began[number]
            at = mark.start if first is None else min(mark.start, first)
            others = [one.end for one in process.behind[number] if one.device == device]
            begin[-1] = min(max([before, at, *others]), end[-1])
            apart[-1] = begin[-1] - before
        reached = max(reached, mark.end)
    chain = Chain(begin, end, apart, [bool(work) for work in own])
    first = began[0] or 0
    earlier = max((one.end for one in earlier_work(recording, process, device)), default=NEVER)
    if marks[0].start < earlier < end[0]:
        begin[0] = earlier
    elif marks[0].start <= first and is_late(process, own, end):
        begin[0] = marks[0].start
    else:
        begin[0], chain.first_has_length = first, False
    return chain


def first_linked(recording: Recording, device: str) -> dict[str, int]:
    """By stream of a device the start of the first work that has a launch."""
    found: dict[str, int] = {}
    for one in recording.work:
        if one.device == device and one.call is not None and one.timed:
            found[one.stream] = min(found.get(one.stream, one.start), one.start)
    return found


def earlier_work(recording: Recording, process: Process, device: str) -> list[Work]:
    """What was launched before the first step, or runs before anything of its stream that has a
    launch.
    """
    linked = first_linked(recording, device)
    first = min(
        (one.start for one in process.own(device)[0]),
        default=min((one.start for one in process.launched[0] if one.timed), default=NEVER),
    )
    return [
        one
        for one in recording.work
        if one.device == device
        and one.timed
        and (
            one.start < linked.get(one.stream, first)
            if one.call is None
            else process.holds(one) and one.call.start < process.marks[0].start
        )
    ]


def steady_from(lengths: Sequence[float | None], span: int = 0) -> int:
    """The first steady step; `span` is how long the work of a first step without a length took."""
    known = [length for length in lengths if length is not None]
    if not known:
        return 0
    median = statistics.median(known)
    spread = MAD_TO_SIGMA * statistics.median(abs(length - median) for length in known)
    limit = median + max(STEADY_SIGMA * spread, STEADY_PART * median)
    first = 0
    if len(known) >= 3:
        while first < len(known) - 2 and known[first] > limit:
            first += 1
    if len(known) == len(lengths):
        return first
    return first + 1 if first or (len(known) > 1 and span > limit) else 0


# windows


@dataclass(frozen=True)
class Answer:
    rule: str
    windows: dict[str, Spans]
    steps: int
    lengths: dict[int, list[float]]
    """By process, in ns."""
    kernels: float | None
    between: int = 0

    @property
    def step_ns(self) -> float | None:
        every = [length for lengths in self.lengths.values() for length in lengths]
        return (statistics.median(every) or None) if every else None

    @property
    def per_second(self) -> float | None:
        rates = [len(one) * 1e9 / sum(one) for one in self.lengths.values() if sum(one)]
        return sum(rates) / len(rates) if rates else None


def answer(recording: Recording) -> Answer:
    devices = sorted({one.device for one in recording.work})
    if recording.marks and not recording.trials:
        found = by_launch(recording, devices)
        if found is not None:
            return found
    timed = [one for one in recording.work if one.timed]
    window = [(min(one.start for one in timed), max(one.end for one in timed))] if timed else []
    everything = Answer("all device work", dict.fromkeys(devices, window), 0, {}, None)
    return by_marks(recording, everything) if recording.marks else everything


def by_launch(recording: Recording, devices: list[str]) -> Answer | None:
    """None where the marks hold."""
    windows: dict[str, list[Spans]] = {device: [] for device in devices}
    lengths: dict[int, list[float]] = {}
    kernels = steps = between = 0
    for pid in sorted(recording.marks):
        process = process_of(recording, pid)
        if process is None:
            continue
        usual = statistics.median(mark.end - mark.start for mark in recording.marks[pid])
        on = sorted({one.device for work in process.launched for one in work if one.timed})
        chains = {device: chain_of(recording, process, device, usual) for device in on}
        if is_unexplained(recording, process, chains):
            continue
        together = [
            mean_of_known([chain.lengths()[number] for chain in its_own(chains, number)])
            for number in range(len(process.marks))
        ]
        ran = its_own(chains, 0)
        span = max(chain.end[0] for chain in ran) - min(chain.begin[0] for chain in ran)
        first = steady_from(together, span)
        known = [length for length in together[first:] if length is not None]
        if any(known):
            lengths[pid] = known
        steps += len(together) - first
        kernels += sum(one.kernel for work in process.launched[first:] for one in work)
        between += sum(sum(chain.apart[first + 1 :]) for chain in chains.values())
        for device, chain in chains.items():
            if any(chain.launches[first:]):
                windows[device].append([(chain.begin[first], chain.end[-1])])
    if not steps:
        return None
    own = {device: common(found) for device, found in windows.items() if found}
    rest = common(list(own.values()))
    return Answer(
        "launches",
        {device: own.get(device, rest) for device in devices},
        steps,
        lengths,
        kernels / steps if any(one.kernel for one in recording.work) else None,
        between,
    )


def its_own(chains: dict[str, Chain], number: int) -> list[Chain]:
    """Of the devices that a step launched work on; of all where it launched none at all."""
    return [chain for chain in chains.values() if chain.launches[number]] or list(chains.values())


def mean_of_known(lengths: Sequence[int | None]) -> float | None:
    known = [length for length in lengths if length is not None]
    return sum(known) / len(known) if known else None


def is_unexplained(recording: Recording, process: Process, chains: dict[str, Chain]) -> bool:
    """Whether more kernels without a launch end after its steps begin than they launched."""
    strange = 0
    for device, chain in chains.items():
        early = {id(one) for one in earlier_work(recording, process, device)}
        strange += sum(
            one.device == device
            and one.kernel
            and one.timed
            and one.call is None
            and id(one) not in early
            and one.end > chain.begin[0]
            for one in recording.work
        )
    return strange > sum(one.kernel for work in process.launched for one in work)


def by_marks(recording: Recording, everything: Answer) -> Answer:
    windows: list[Spans] = []
    lengths: dict[int, list[float]] = {}
    starts = sorted(one.start for one in recording.work if one.kernel)
    kernels = steps = 0
    for process, marks in recording.marks.items():
        kept = marks[steady_from([mark.end - mark.start for mark in marks]) :]
        lengths[process] = [mark.end - mark.start for mark in kept]
        steps += len(kept)
        kernels += sum(
            bisect.bisect_left(starts, mark.end) - bisect.bisect_left(starts, mark.start)
            for mark in kept
        )
        windows.append(
            merged((mark.start, mark.end) for mark in marks)
            if recording.trials
            else [(kept[0].start, max(mark.end for mark in kept))]
        )
    window = common(windows)
    work = merged((one.start, one.end) for one in recording.work if one.timed)
    met = not work or total(intersection(work, window))
    return Answer(
        "marks" if met else everything.rule,
        dict.fromkeys(everything.windows, window) if met else everything.windows,
        steps,
        lengths,
        kernels / steps if starts else None,
    )


# intervals


def merged(spans: Iterable[tuple[int, int]]) -> Spans:
    found: Spans = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def intersection(one: Spans, other: Spans) -> Spans:
    found = []
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append((start, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def total(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


def common(sets: list[Spans]) -> Spans:
    """What all have in common; all of them where that is nothing."""
    found = merged(sets[0])
    for other in sets[1:]:
        found = intersection(found, other)
    return found or merged(span for spans in sets for span in spans)


PARTS = ("window", COMPUTE, TALK, COPY, "idle")


def partition(recording: Recording, windows: dict[str, Spans]) -> dict[str, int]:
    """Parts of the windows in ns, added over the devices."""
    sums = dict.fromkeys(PARTS, 0)
    for device, window in windows.items():
        here = [one for one in recording.work if one.device == device and one.timed]
        spans: Spans = []
        reached = 0
        for kind in (COMPUTE, TALK, COPY):
            spans = merged([*spans, *((one.start, one.end) for one in here if one.kind == kind)])
            busy = total(intersection(spans, window))
            sums[kind] += busy - reached
            reached = busy
        sums["window"] += total(window)
        sums["idle"] += total(window) - reached
    return sums


# the table


def figures(path: Path) -> dict[str, Any] | None:
    """What is counted in a file; None where it is no trace of Kineto."""
    recording = read(path)
    if recording is None:
        return None
    found = answer(recording)
    return {
        "rule": found.rule,
        "steps": found.steps,
        "step_ns": found.step_ns,
        "steps_per_second": found.per_second,
        "kernels_per_step": found.kernels,
        "between_steps_ns": found.between,
        "partition": partition(recording, found.windows),
        "windows": found.windows,
    }


def said_by(checkout: Path, path: Path) -> dict[str, Any] | None:
    """What a checkout says of a file; None where it refuses it."""
    done = subprocess.run(
        [str(checkout / ".venv/bin/profharness"), "metrics", str(path), "--json"],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{path.name}: {done.stderr.strip()}", file=sys.stderr)
        return None
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def differences(counted: dict[str, Any], said: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """By name what was counted and what was said, where they differ."""
    metrics = said["metrics"]
    step, rate, kernels = (
        metrics.get(name, {}).get("value")
        for name in ("step_time", "steps_per_second", "kernels_per_step")
    )
    parts = counted["partition"]
    pairs = {
        "step_ns": (counted["step_ns"], step),
        "steps_per_second": (counted["steps_per_second"], rate),
        "kernels_per_step": (counted["kernels_per_step"], kernels),
        **{f"{name}_ns": (parts[name], part) for name, part in parts_of(said).items()},
    }
    return {name: pair for name, pair in pairs.items() if not same(*pair)}


def parts_of(said: dict[str, Any]) -> dict[str, int]:
    split = said["partition"] or {}
    names = {"window_ns": "window", "exposed_communication_ns": TALK, "exposed_copy_ns": COPY}
    found = dict.fromkeys(PARTS, 0)
    for name, ns in split.items():
        found[names.get(name, "idle" if name.startswith("idle") else COMPUTE)] += ns or 0
    return found


def same(one: float | None, other: float | None) -> bool:
    """Whole ns are equal; what a division rounded may differ in its last digits."""
    if one is None or other is None:
        return one == other
    return one == other or math.isclose(one, other, rel_tol=1e-12)


COLUMNS = ("file", "counted by", "steps", "step (ns)", "steps/s", "kernels/step", "window (ns)")
SHARES = (COMPUTE, TALK, COPY, "idle")


def row(name: str, found: dict[str, Any]) -> list[str]:
    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    parts = found["partition"]
    return [
        name,
        found["rule"],
        str(found["steps"]),
        shown(found["step_ns"], ",.1f").removesuffix(".0"),
        shown(found["steps_per_second"], ".3f"),
        shown(found["kernels_per_step"], ",.1f").removesuffix(".0"),
        f"{parts['window']:,}",
        *(f"{100 * parts[part] / max(parts['window'], 1):.1f} %" for part in SHARES),
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths", type=Path, nargs="*", help="files, or folders of them (default: those recorded)"
    )
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="compare with what this checkout says"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write all to this file")
    return parser.parse_args()


def files(paths: Sequence[Path]) -> list[Path]:
    chosen = paths or [ROOT.parent / "shared/fixtures" / name for name in ("kineto", "failing")]
    return [
        file
        for path in chosen
        for file in (sorted(path.rglob("*.json*")) if path.is_dir() else [path])
        if "expected" not in file.parts and file.name != "facts.json"
    ]


def main() -> int:
    asked = arguments()
    told: dict[str, Any] = {}
    differing = 0
    print(" | ".join([*COLUMNS, *SHARES, *(["differs"] if asked.against else [])]))
    for path in files(asked.paths):
        found = figures(path)
        if found is None:
            print(f"{path.name} | no trace of Kineto")
            continue
        words = row(path.name, found)
        if asked.against:
            said = said_by(asked.against, path)
            found["differs"] = {"refused": (1, 0)} if said is None else differences(found, said)
            differing += bool(found["differs"])
            words.append(
                ", ".join(
                    f"{name}: {one} counted, {other} said"
                    for name, (one, other) in found["differs"].items()
                )
                or "nothing"
            )
        print(" | ".join(words), flush=True)
        told[path.name] = found
    if asked.against:
        print(f"{len(told) - differing} of {len(told)} files are told as they are counted")
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())
