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
from profharness.trace.columns.keys import coded, distinct, pack
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
    return _interval(trace, np.flatnonzero(chosen), launching_calls(trace), _Syncs(trace))


def causal_intervals(trace: Trace) -> dict[tuple[int, int], CausalInterval]:
    """By (source, device), for all that have kernels linked to their launches."""
    if not len(trace.kernels) or not len(trace.api):
        return {}
    calls, syncs = launching_calls(trace), _Syncs(trace)
    pairs = (
        trace.kernels.source.astype(np.int64) * (len(trace.devices) + 1) + trace.kernels.device + 1
    )
    values, place = coded(pairs)
    order = np.argsort(place, kind="stable")
    borders = np.searchsorted(place[order], np.arange(1, len(values)))
    found = {}
    for pair, rows in zip(values.tolist(), np.split(order, borders), strict=True):
        interval = _interval(trace, rows, calls, syncs)
        if interval is not None:
            found[divmod(pair, len(trace.devices) + 1)] = interval
    return {(source, device - 1): interval for (source, device), interval in found.items()}


def _interval(trace: Trace, rows: I64, calls: I64, syncs: _Syncs) -> CausalInterval | None:
    rows = rows[(calls[rows] != NULL) & (trace.kernels.start_ns[rows] != NULL)]
    if not len(rows):
        return None
    call = calls[rows]
    low = int(np.max(trace.api.start_ns[call] - trace.kernels.start_ns[rows]))
    slack = syncs.return_after(rows, call)
    bounded = slack != _NO_BOUND
    ends = trace.kernels.start_ns[rows] + trace.kernels.dur_ns[rows]
    high = int(np.min(slack[bounded] - ends[bounded])) if bounded.any() else None
    return CausalInterval(low, high, len(rows), int(bounded.sum()))


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
        api = self._trace.api
        result = np.full(len(rows), _NO_BOUND, np.int64)
        owner = pack([api.source[call], api.pid[call]])
        for one in distinct(owner).tolist():
            mine = owner == one
            first = int(np.argmax(mine))
            waits = self._waits(
                int(api.source[call[first]]),
                int(api.pid[call[first]]),
                self._trace.kernels.source[rows[first]],
            )
            result[mine] = self._first_return(
                waits, api.start_ns[call[mine]] + api.dur_ns[call[mine]]
            )
        return result

    def _waits(self, source: int, pid: int, kernel_source: int) -> Mask:
        """Rows of `api`: the synchronisations of this process that surely cover all its kernels."""
        api, kernels, copies = self._trace.api, self._trace.kernels, self._trace.copies
        own_kernels = kernels.source == kernel_source
        own_copies = copies.source == kernel_source
        if (
            len(
                {
                    process
                    for process in distinct(kernels.pid[own_kernels]).tolist()
                    if process != NULL
                }
            )
            > 1
        ):
            own_kernels &= kernels.pid == pid
            own_copies &= copies.pid == pid
        devices = np.union1d(kernels.device[own_kernels], copies.device[own_copies])
        if len(devices) != 1:
            return np.zeros(len(api), np.bool_)
        streams = np.union1d(kernels.stream[own_kernels], copies.stream[own_copies])
        wanted = (
            self._device | self._stream
            if len(streams) == 1 and streams[0] != NULL
            else self._device
        )
        waits: Mask = wanted & (api.source == source) & (api.pid == pid)
        return waits

    def _first_return(self, waits: Mask, launched: I64) -> I64:
        """The earliest end among the waiting calls that start at or after each time."""
        api = self._trace.api
        at = np.flatnonzero(waits)
        if not len(at):
            return np.full(len(launched), _NO_BOUND, np.int64)
        at = at[np.argsort(api.start_ns[at], kind="stable")]
        starts, ends = api.start_ns[at], api.start_ns[at] + api.dur_ns[at]
        earliest = np.append(np.minimum.accumulate(ends[::-1])[::-1], _NO_BOUND)
        return earliest[np.searchsorted(starts, launched, "left")]


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
    starts = trace.kernels.start_ns[trace.kernels.source == source]
    return 2000 if not np.any(starts % 1000) else 0
