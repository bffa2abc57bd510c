"""The host call that launched each device record, by correlation id: the one join that clocks,
points, figures and arrows rest on. Pure.

A correlation id is unique within a source and process. All kernels of a graph share the id of the
one call that launched the graph. Flow events are not used: they give wrong counts in real files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from profharness.trace import call_names
from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import I32, I64, Source, Trace

Mask = npt.NDArray[np.bool_]


class Correlated(Protocol):
    """A table whose rows carry a source, a process and a correlation id: kernels, copies, api."""

    @property
    def source(self) -> I32: ...
    @property
    def pid(self) -> I64: ...
    @property
    def correlation(self) -> I64: ...


@dataclass(frozen=True, eq=False)
class Joined:
    """`call[i]` is the row of the call that launched record `i`, NULL where there is none.

    `has_calls[i]` says whether the record's source (or the one that holds its calls) has any host
    call at all, `in_graph[i]` whether a call with its id launches a graph.
    """

    call: I64
    has_calls: Mask
    in_graph: Mask


def launching_calls(trace: Trace) -> I64:
    """For each kernel the row in `api` of the call that launched it, NULL without one."""
    return join(trace, trace.kernels).call


def join(trace: Trace, records: Correlated) -> Joined:
    """The launching call of each record. Where several calls share an id, a launch goes before
    other calls, then the first, then the outermost.

    Kept with the table of records: clocks, figures and findings all ask for it.
    """
    if not isinstance(records, Table):
        return _join(trace, records)
    return records.kept(
        join, (trace.api, trace.sources, trace.strings), lambda: _join(trace, records)
    )


def _join(trace: Trace, records: Correlated) -> Joined:
    api = trace.api
    owners = _owners(trace)
    having = np.zeros(len(owners), np.bool_)
    having[owners[_calling(trace)]] = True
    rows = len(records.source)
    if not len(api) or not rows:
        return Joined(
            np.full(rows, NULL, np.int64), having[owners[records.source]], np.zeros(rows, np.bool_)
        )
    call_key, record_key = _keys(owners, trace, records)
    carrying, known = api.correlation != NULL, records.correlation != NULL
    launches = call_names.matching(trace.strings, api, call_names.LAUNCH)
    call = matched(
        (call_key, carrying), (record_key, known), (-api.dur_ns, api.start_ns, ~launches)
    )
    graphs = call_names.matching(trace.strings, api, call_names.GRAPH_LAUNCH) & carrying
    in_graph = (
        np.isin(record_key, np.unique(call_key[graphs])) & known
        if graphs.any()
        else np.zeros(rows, np.bool_)
    )
    return Joined(call, having[owners[records.source]], in_graph)


def matched(
    calls: tuple[I64, Mask],
    records: tuple[I64, Mask],
    preference: Sequence[npt.NDArray[np.generic]],
) -> I64:
    """For each record the position of the call with the same key, NULL for none.

    Keys come with a mask of those that count. Of several calls with one key the one that sorts
    first by `preference` is taken, its last column before the others (as `numpy.lexsort` has it).
    """
    (call_key, carrying), (record_key, known) = calls, records
    usable = np.flatnonzero(carrying) if len(record_key) else ()
    if not len(usable):
        return np.full(len(record_key), NULL, np.int64)
    order = usable[np.argsort(call_key[usable], kind="stable")]
    keys = call_key[order]
    if np.any(keys[1:] == keys[:-1]):
        order = usable[np.lexsort((*(column[usable] for column in preference), call_key[usable]))]
    at = np.minimum(np.searchsorted(keys, record_key), len(keys) - 1)
    return np.where((keys[at] == record_key) & known, order[at], NULL)


def _keys(owners: I64, trace: Trace, records: Correlated) -> tuple[I64, I64]:
    """One key per call and per record over (owner, process, id), the process only where both sides
    know it.
    """
    api = trace.api
    call_owner, record_owner = owners[api.source], owners[records.source]
    call_pid, record_pid = _pids(trace, api), _pids(trace, records)
    vague = np.zeros(len(owners), np.bool_)
    vague[call_owner[call_pid == NULL]] = True
    vague[record_owner[record_pid == NULL]] = True
    joined = pack(
        [
            np.concatenate((call_owner, record_owner)),
            np.concatenate(
                (
                    np.where(vague[call_owner], NULL, call_pid),
                    np.where(vague[record_owner], NULL, record_pid),
                )
            ),
            np.concatenate((api.correlation, records.correlation)),
        ]
    )
    return joined[: len(api)], joined[len(api) :]


def _pids(trace: Trace, records: Correlated) -> I64:
    """The process of each row: as recorded, else that of its source."""
    if not (records.pid == NULL).any():
        return records.pid
    of_source = np.array(
        [NULL if source.pid is None else source.pid for source in trace.sources], np.int64
    )
    return np.where(records.pid == NULL, of_source[records.source], records.pid)


def _owners(trace: Trace) -> I64:
    """For each source the source that holds its host calls: itself, or its sibling where the tool
    writes them apart.

    rocprofv3 writes kernels and host calls of one process to two CSV files. A source without calls
    is joined with the sources of the same pass, layer, format, host, rank and process that have no
    kernels or copies.
    """
    count = len(trace.sources)
    owners = np.arange(count, dtype=np.int64)
    calls, device = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    calls[_calling(trace)] = True
    device[trace.kernels.source] = True
    device[trace.copies.source] = True
    donors: dict[object, int] = {}
    for position, source in enumerate(trace.sources):
        if source.pid is not None and calls[position] and not device[position]:
            donors.setdefault(correlated_process(source), position)
    for position, source in enumerate(trace.sources):
        if source.pid is not None and not (calls[position] and device[position]):
            owners[position] = donors.get(correlated_process(source), position)
    return owners


def _calling(trace: Trace) -> I32:
    """The source of each host call; what drivers did for a process is none."""
    calls = call_names.is_call(trace.strings, trace.api)
    return trace.api.source if calls.all() else trace.api.source[calls]


def correlated_process(source: Source) -> object:
    """What sources of one process have in common where a tool writes its calls and its device work
    apart.
    """
    return source.pass_name, source.layer, source.format, source.host, source.rank, source.pid
