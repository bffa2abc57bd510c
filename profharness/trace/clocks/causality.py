"""What cause and effect say about a device's clock against the host's, without any marker. Pure.

No kernel starts before the call that launched it, and none that was launched before a
synchronisation ends after that call's return. Both bound the shift that may be added to the
device's times: a lower end from launches, an upper end from synchronisations. 0 outside of the
interval is an error of the recorded times; an empty interval means that no constant shift repairs
them. A shift is offered, never applied here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.findings import Finding, finding
from profharness.trace.columns.keys import Integers, coded, pack
from profharness.trace.columns.table import NULL
from profharness.trace.launches import launching_calls
from profharness.trace.model import I64, Trace
from profharness.units import format_ns

Mask = npt.NDArray[np.bool_]
# They return when all work of the calling process on the current device is done.
DEVICE_SYNCS = frozenset(
    {
        "hipDeviceSynchronize",
        "hipCtxSynchronize",
        "cudaDeviceSynchronize",
        "cudaThreadSynchronize",
        "cuCtxSynchronize",
    }
)
# They return when the work of one stream is done. Event synchronisation gives no bound: which
# launches came before the event's recording does not stand in the call.
STREAM_SYNCS = frozenset(
    {
        "hipStreamSynchronize",
        "hipStreamSynchronize_spt",
        "cudaStreamSynchronize",
        "cuStreamSynchronize",
        "cudaStreamSynchronize_ptsz",
        "cuStreamSynchronize_ptsz",
    }
)
_NO_BOUND = np.iinfo(np.int64).max


@dataclass(frozen=True)
class CausalInterval:
    """Shifts in ns that may be added to the device's times; an end is None where nothing
    bounds it.
    """

    low_ns: int | None
    high_ns: int | None
    launches: int
    synchronised: int

    @property
    def is_empty(self) -> bool:
        return self.low_ns is not None and self.high_ns is not None and self.low_ns > self.high_ns

    @property
    def excess_ns(self) -> int:
        """By how much the recorded times contradict causality: the smallest shift that repairs
        them, signed; 0 if none is needed.
        """
        if self.is_empty:
            return (self.low_ns or 0) - (self.high_ns or 0)
        return max(self.low_ns or 0, 0) or min(self.high_ns or 0, 0)


def causal_interval(trace: Trace, device: int, source: int | None = None) -> CausalInterval | None:
    """For the device at this position, over all sources or one; None when no kernel is linked to
    its launch.
    """
    chosen = trace.kernels.device == device
    if source is not None:
        chosen &= trace.kernels.source == source
    linked = _Linked.of(trace, chosen)
    return linked.interval(np.arange(len(linked.rows))) if len(linked.rows) else None


def causal_intervals(trace: Trace) -> dict[tuple[int, int], CausalInterval]:
    """By (source, device), for all that have kernels linked to their launches."""
    if not len(trace.kernels) or not len(trace.api):
        return {}
    linked = _Linked.of(trace, np.ones(len(trace.kernels), np.bool_))
    if not len(linked.rows):
        return {}
    sources, devices = (
        column[linked.rows] for column in (trace.kernels.source, trace.kernels.device)
    )
    values, place = coded(sources.astype(np.int64) * (len(trace.devices) + 1) + devices + 1)
    order = np.argsort(place, kind="stable")
    borders = np.searchsorted(place[order], np.arange(1, len(values)))
    found = {}
    for pair, mine in zip(values.tolist(), np.split(order, borders), strict=True):
        source, device = divmod(pair, len(trace.devices) + 1)
        found[source, device - 1] = linked.interval(mine)
    return found


@dataclass(frozen=True)
class _Linked:
    """Kernels with a start and a launch. `early`: by how much each starts before its call;
    `slack`: how long after its end the first synchronisation returned that waited for it
    (_NO_BOUND where there is none).
    """

    rows: I64
    early: I64
    slack: I64

    @classmethod
    def of(cls, trace: Trace, chosen: Mask) -> _Linked:
        kernels, calls = trace.kernels, launching_calls(trace)
        rows = np.flatnonzero(chosen & (calls != NULL) & (kernels.start_ns != NULL))
        call, start = calls[rows], kernels.start_ns[rows]
        returned = _Syncs(trace).return_after(rows, call)
        bounded = returned != _NO_BOUND
        slack = np.full(len(rows), _NO_BOUND, np.int64)
        slack[bounded] = returned[bounded] - (start + kernels.dur_ns[rows])[bounded]
        return cls(rows, trace.api.start_ns[call] - start, slack)

    def interval(self, mine: I64) -> CausalInterval:
        """Of the kernels at these positions of `rows`, at least one."""
        slack = self.slack[mine]
        bounded = slack[slack != _NO_BOUND]
        return CausalInterval(
            int(self.early[mine].max()),
            int(bounded.min()) if len(bounded) else None,
            len(mine),
            len(bounded),
        )


class _Syncs:
    """The synchronisation calls of a trace, and which kernels each of them surely waited for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        texts = trace.strings.texts
        names = trace.api.name
        self._device = np.isin(
            names, [code for code, text in enumerate(texts) if text in DEVICE_SYNCS]
        )
        self._stream = np.isin(
            names, [code for code, text in enumerate(texts) if text in STREAM_SYNCS]
        )

    def return_after(self, rows: I64, call: I64) -> I64:
        """For each kernel the return of the earliest synchronisation that began after its launch
        returned.

        A call does not name its device: only processes that used one device count. It does not name
        its stream either: stream synchronisations count where the process used a single stream.
        Process and source are those of the launch.
        """
        result = np.full(len(rows), _NO_BOUND, np.int64)
        one_device, one_stream = self._alone(rows, call)
        for syncs, covered in (
            (self._device, one_device & ~one_stream),
            (self._device | self._stream, one_device & one_stream),
        ):
            mine = np.flatnonzero(covered)
            if syncs.any() and len(mine):
                result[mine] = self._first_return(np.flatnonzero(syncs), call[mine])
        return result

    def _alone(self, rows: I64, call: I64) -> tuple[Mask, Mask]:
        """For each kernel whether all work that its process may have done ran on one device, and
        whether it ran on one known stream.

        That is the work of the kernel's source, or, where several processes are known there, of the
        launching process alone.
        """
        kernels, copies = self._trace.kernels, self._trace.copies
        source, pid, device, stream = (
            np.concatenate((getattr(kernels, name), getattr(copies, name))).astype(np.int64)
            for name in ("source", "pid", "device", "stream")
        )
        asked_source = kernels.source[rows].astype(np.int64)
        known = np.flatnonzero(kernels.pid != NULL)
        alone, _ = _one_value(kernels.source[known], kernels.pid[known], asked_source)
        unnamed = ~np.isin(asked_source, kernels.source[known])
        of_all = alone | unnamed
        asked_pid = self._trace.api.pid[call].astype(np.int64)
        keys = pack([np.concatenate((source, asked_source)), np.concatenate((pid, asked_pid))])
        found = []
        for values in (device, stream):
            whole, value = _one_value(source, values, asked_source)
            own, own_value = _one_value(keys[: len(source)], values, keys[len(source) :])
            found.append((np.where(of_all, whole, own), np.where(of_all, value, own_value)))
        (one_device, _), (one_stream, which) = found
        return one_device, one_stream & (which != NULL)

    def _first_return(self, at: I64, call: I64) -> I64:
        """For each call the earliest end among the synchronisations `at` of its process that start
        at or after its return.
        """
        api = self._trace.api
        owner = coded(pack([api.source, api.pid]))[1]
        starts, ends = api.start_ns[at], api.start_ns[at] + api.dur_ns[at]
        launched = api.start_ns[call] + api.dur_ns[call]
        times, place = np.unique(np.concatenate((starts, launched)), return_inverse=True)
        when = np.concatenate((owner[at], owner[call])) * len(times) + place
        order = np.argsort(when[: len(at)], kind="stable")
        returns, rank = np.unique(ends[order], return_inverse=True)
        by_owner = owner[at][order] * len(returns)
        # the ranks of a later process are higher, so that the lowest of all that follow is its own
        earliest = np.minimum.accumulate((by_owner + rank)[::-1])[::-1] - by_owner
        first = np.searchsorted(when[: len(at)][order], when[len(at) :], "left")
        within = first < len(at)
        within[within] = owner[at][order][first[within]] == owner[call][within]
        result = np.full(len(call), _NO_BOUND, np.int64)
        result[within] = returns[earliest[first[within]]]
        return result


def _one_value(key: Integers, value: Integers, asked: Integers) -> tuple[Mask, I64]:
    """For each key that is asked for whether all its rows have one value, and one of the values;
    no and NULL for a key without rows.
    """
    values, place = coded(np.concatenate((key, asked)))
    rows, wanted = place[: len(key)], place[len(key) :]
    some, one = np.full(len(values), NULL, np.int64), np.zeros(len(values), np.bool_)
    some[rows] = value
    one[rows] = True
    one[rows[some[rows] != value]] = False
    return one[wanted], some[wanted]


def causality_findings(trace: Trace) -> tuple[Finding, ...]:
    """`clock-causality` for each source and device whose times contradict cause and effect by more
    than their resolution.
    """
    found = []
    for (source, device), interval in causal_intervals(trace).items():
        excess = interval.excess_ns
        if abs(excess) <= _resolution_ns(trace, source):
            continue
        path = trace.sources[source].path
        index = trace.devices[device].index if device != NULL else "unknown"
        if interval.is_empty:
            text = (
                f"{path}, device {index}: no shift of the device's times keeps cause before "
                f"effect; {format_ns(abs(excess))} are missing"
            )
        elif excess > 0:
            text = (
                f"{path}, device {index}: a kernel starts {format_ns(excess)} before the "
                "call that launched it"
            )
        else:
            text = (
                f"{path}, device {index}: a kernel ends {format_ns(-excess)} after the "
                "return of the synchronisation that waited for it"
            )
        found.append(
            finding(
                "clock-causality",
                text,
                excess_ns=excess,
                launches=interval.launches,
                synchronised=interval.synchronised,
            )
        )
    return tuple(found)


def _resolution_ns(trace: Trace, source: int) -> int:
    """Older tools write whole microseconds: a difference of two such times may be off by nearly 2
    of them.
    """
    kernels = trace.kernels
    starts = kernels.start_ns[(kernels.source == source) & (kernels.start_ns != NULL)]
    return 2000 if not np.any(starts % 1000) else 0
