"""The device time of steps, by what they launched (docs/metrics.md#step).

The host of an asynchronous program runs ahead of its devices, so that a step's mark says when its
work was launched and not when it ran. Here each device has a time of each step: it ends with the
last of the work that was launched inside of the mark, by any thread of the process that holds it,
and begins where the step before ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.time.device_work import Work, work_of
from profharness.trace.columns.keys import distinct, pack
from profharness.trace.columns.table import NULL
from profharness.trace.launches import correlated_process
from profharness.trace.model import I64, Source, Trace

Mask = npt.NDArray[np.bool_]
ADJOINING = 0.1
"""Marks adjoin where what lies between them is at most this part of the median mark: profilers
leave some ten microseconds there, a validation or a checkpoint leaves more. A tenth is also by what
a step may differ from the others and be steady.
"""
_FAR = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class DeviceSteps:
    """The steps of one process on one device, in ns: one value per step, ends in rising order.

    `has_length` is False where nothing says when the first step began: it is held to begin with its
    own first work. `apart_ns` is what lies between a step and the one before that it does not
    adjoin. `launches` says whether it launched work of this device.
    """

    device: int
    begin: I64
    end: I64
    has_length: Mask
    apart_ns: I64
    launches: Mask


@dataclass(frozen=True, eq=False)
class Launched:
    """What the steps of one process launched: `rows` of the trace's work, also those without times,
    which are kernels of their step and say nothing of when it ran. `steps` are the positions
    of those that count among its marks: the first and the last of them launch something. `kernels`
    and `devices` are theirs.
    """

    rows: I64
    steps: I64
    kernels: I64
    devices: tuple[DeviceSteps, ...]


@dataclass(frozen=True, eq=False)
class _Owned:
    """The marks of one process by their start, and the linked work that it launched: rows of the
    trace's work, when each was launched, and the last mark that had begun then (NULL: none).
    `held` says whether that mark, or one that began before it, held the launch.
    """

    start: I64
    end: I64
    rows: I64
    launched: I64
    step: I64
    held: Mask


def launched_steps(trace: Trace, marks: I64, process: I64) -> dict[int, Launched]:
    """The steps of each process that launched device work in them; `marks` are rows of
    `trace.marks` in order of process and start, `process` the number of each.

    A process whose kernels are for the most part not linked to their launches is left out.
    """
    if not len(trace.api) or not (len(trace.kernels) or len(trace.copies)):
        return {}
    work = work_of(trace)
    linked = np.flatnonzero(work.call != NULL)
    found = {}
    if len(linked):
        for number, owned in _owned(trace, work, linked, (marks, process)):
            launched = _launched(work, owned)
            if launched is not None:
                found[number] = launched
    return found


def _owned(
    trace: Trace, work: Work, linked: I64, marked: tuple[I64, I64]
) -> Iterator[tuple[int, _Owned]]:
    """Each process that marks steps, with the work that its threads launched."""
    (rows, process), table = marked, trace.marks
    calls = work.call[linked]
    launched = trace.api.start_ns[calls]
    mark_key, call_key = process_keys(trace, rows, calls)
    order = np.argsort(call_key, kind="stable")
    first, last = (np.searchsorted(call_key[order], mark_key, side) for side in ("left", "right"))
    begins = np.flatnonzero(np.diff(process, prepend=process[:1] - 1))
    for mine in np.split(np.arange(len(rows)), begins[1:]):
        marks = rows[mine]
        start, end = table.start_ns[marks], table.start_ns[marks] + table.dur_ns[marks]
        own = order[first[mine[0]] : last[mine[0]]]
        at = launched[own]
        step = np.searchsorted(start, at, "right") - 1
        step, held = _holding(end, at, step)
        yield int(process[mine[0]]), _Owned(start, end, linked[own], at, step, held)


def _holding(end: I64, at: I64, step: I64) -> tuple[I64, Mask]:
    """The mark that holds each instant: of several the one that began last. `step` is the last that
    began before, and stays where none holds it.
    """
    held = (step >= 0) & (at < end[step])
    open_ = (step >= 0) & ~held & (at < np.maximum.accumulate(end)[step])
    if open_.any():  # marks that overlap
        step = step.copy()
        step[open_] = _last_beyond(end, step[open_], at[open_])
    return step, held | open_


def _last_beyond(end: I64, place: I64, at: I64) -> I64:
    """The last mark up to each place that ends after an instant; there is one. In steps of halves
    of the marks, of which none ends later.
    """
    latest, width = [end], 1  # ends of the last 1, 2, 4, ... marks
    while width < len(end):
        wider = latest[-1].copy()
        np.maximum(wider[width:], latest[-1][:-width], out=wider[width:])
        latest.append(wider)
        width *= 2
    for ends in reversed(latest):
        place = np.where(ends[place] <= at, place - width, place)
        width //= 2
    return place


def process_keys(trace: Trace, marks: I64, calls: I64) -> tuple[I64, I64]:
    """One key per mark and per call, over the process of their sources and the process id. The id
    says nothing where a side does not know it, or where each side knows one alone: seen from inside
    and outside of a container they differ.
    """
    group = _processes(trace, distinct(trace.marks.source[marks]), distinct(trace.api.source))
    owners = group[trace.marks.source[marks]], group[trace.api.source[calls]]
    pids = trace.marks.pid[marks], trace.api.pid[calls]
    vague = np.zeros(len(group), np.bool_)
    for number in distinct(owners[0]).tolist():
        marking, calling = (
            distinct(pid[owner == number]) for pid, owner in zip(pids, owners, strict=True)
        )
        alone = len(marking) == len(calling) == 1
        vague[number] = alone or NULL in marking or NULL in calling
    told = [np.where(vague[owner], NULL, pid) for pid, owner in zip(pids, owners, strict=True)]
    key = pack([np.concatenate(owners), np.concatenate(told)])
    return key[: len(marks)], key[len(marks) :]


def _processes(trace: Trace, marking: npt.NDArray[np.int32], calling: npt.NDArray[np.int32]) -> I64:
    """For each source a number that the sources of its process share. Of a file that holds marks
    and calls it is its own, since the process ids of loose files are of any host.
    """
    both = set(marking.tolist()) & set(calling.tolist())
    numbers: dict[object, int] = {}
    return np.array(
        [
            numbers.setdefault(_process(source, place, alone=place in both), len(numbers))
            for place, source in enumerate(trace.sources)
        ],
        np.int64,
    )


def _process(source: Source, place: int, *, alone: bool) -> object:
    if source.pid is None:
        return place
    if source.pass_name:
        return source.pass_name, source.host, source.rank, source.pid
    return place if alone else correlated_process(source)


def _launched(work: Work, owned: _Owned) -> Launched | None:
    count = len(owned.start)
    rows, step = owned.rows[owned.held], owned.step[owned.held]
    kernels = np.bincount(step[rows < work.kernels], minlength=count)
    devices = distinct(work.device[rows[work.start[rows] != NULL]]).tolist()
    if not devices:
        return None
    own = {device: _own(work, owned, device) for device in devices}
    anywhere = own[devices[0]]
    for device in devices[1:]:
        anywhere = anywhere.joined(own[device])
    active = np.flatnonzero(anywhere.launches)
    counted = np.arange(active[0], active[-1] + 1)
    parts = [_on(work, owned, own[device], anywhere, (device, counted)) for device in devices]
    unexplained = sum(strange for _, strange in parts)
    if unexplained > int(kernels.sum()):
        return None
    return Launched(rows, counted, kernels[counted], tuple(part for part, _ in parts))


@dataclass(frozen=True, eq=False)
class _Own:
    """What each step launched on one device (or on any): whether anything, the first launch, the
    first start and the last end of the work.
    """

    launches: Mask
    asked: I64
    start: I64
    end: I64

    def joined(self, other: _Own) -> _Own:
        return _Own(
            self.launches | other.launches,
            np.minimum(self.asked, other.asked),
            np.minimum(self.start, other.start),
            np.maximum(self.end, other.end),
        )


def _own(work: Work, owned: _Owned, device: int) -> _Own:
    here = owned.held & (work.device[owned.rows] == device)
    here &= work.start[owned.rows] != NULL
    rows, step = owned.rows[here], owned.step[here]
    count = len(owned.start)
    asked, start = np.full(count, _FAR.max), np.full(count, _FAR.max)
    end = np.full(count, _FAR.min)
    np.minimum.at(asked, step, owned.launched[here])
    np.minimum.at(start, step, work.start[rows])
    np.maximum.at(end, step, work.end[rows])
    return _Own(end > _FAR.min, asked, start, end)


def _on(
    work: Work, owned: _Owned, own: _Own, anywhere: _Own, place: tuple[int, I64]
) -> tuple[DeviceSteps, int]:
    """The steps that count on one device, and how many later kernels of it no call launched.

    A step that launches on other devices only ends here when it ends there.
    """
    device, counted = place
    start = np.where(own.launches, own.start, anywhere.start)[counted]
    last = np.where(own.launches, own.end, anywhere.end)[counted]
    end = np.maximum.accumulate(last)
    before, strange = _unlinked(work, device, int(start[0]))
    begin = np.concatenate((end[:1], end[:-1]))
    mark = owned.start[counted]
    earlier = _earlier(work, owned, device, int(mark[0]), before)
    has_length = np.ones(len(counted), np.bool_)
    if mark[0] < earlier < end[0]:
        begin[0] = earlier
    elif mark[0] <= start[0] and _is_late(owned, own, counted, end):
        begin[0] = mark[0]
    else:
        begin[0], has_length[0] = min(start[0], end[0]), False
    apart = _apart(owned, counted)
    if apart.any():
        between = _between(work, owned, device)[counted]
        at = np.where(mark <= start, mark, start)
        later = np.maximum(np.maximum(at, between), begin)
        begin = np.where(apart, np.minimum(later, end), begin)
    between_ns = np.where(apart, begin - np.concatenate((begin[:1], end[:-1])), 0)
    strange = strange[strange < work.kernels]
    unknown = int((work.end[strange] > begin[0]).sum())
    launches = own.launches[counted]
    return DeviceSteps(device, begin, end, has_length, between_ns, launches), unknown


def _apart(owned: _Owned, counted: I64) -> Mask:
    """Which steps do not adjoin the one before; the first has none."""
    gap = owned.start[counted[1:]] - np.maximum.accumulate(owned.end)[counted[:-1]]
    usual = float(np.median(owned.end - owned.start))
    return np.concatenate(([False], gap > ADJOINING * usual))


def _is_late(owned: _Owned, own: _Own, counted: I64, end: I64) -> bool:
    """Whether the host usually launches a step after the one before has ended on the device; of a
    single step, whether it ended before its mark did: the next one could launch no earlier.
    """
    both = own.launches[counted[1:]] & own.launches[counted[:-1]]
    if not both.any():
        first = int(counted[0])
        return bool(end[0] <= owned.end[first])
    late = own.asked[counted[1:]] >= end[:-1]
    return 2 * int((late & both).sum()) > int(both.sum())


def _unlinked(work: Work, device: int, first: int) -> tuple[I64, I64]:
    """The work of a device that no recorded call launched, in two: what was launched before the
    recording (on each stream what began before the first linked work there, or before `first`,
    where the stream has none), and all else.
    """
    rows, begun = work.unlinked(device)
    before = work.start[rows] < np.where(begun == _FAR.max, first, begun)
    return rows[before], rows[~before]


def _earlier(work: Work, owned: _Owned, device: int, mark: int, unlinked: I64) -> int:
    """When the work ended that was launched before the first step's mark; the least integer
    without such work.
    """
    before = owned.rows[(owned.launched < mark) & (work.device[owned.rows] == device)]
    ends = work.end[np.concatenate((before, unlinked))]
    return int(ends.max(initial=_FAR.min))


def _between(work: Work, owned: _Owned, device: int) -> I64:
    """For each mark when the work ended that was launched between the one before and it."""
    count = len(owned.start)
    ends = np.full(count + 1, _FAR.min)
    loose = ~owned.held & (work.device[owned.rows] == device)
    np.maximum.at(ends, owned.step[loose] + 1, work.end[owned.rows[loose]])
    return ends[:count]
