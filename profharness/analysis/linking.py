"""Device records to the host calls that launched them, by correlation id (DESIGN 8), vectorised.

A correlation id is unique within a source and process. All kernels of a graph share the id of the one
call that launched the graph. Flow events are not used: they give wrong counts in real files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from profharness.analysis import patterns
from profharness.analysis.grouping import pack
from profharness.trace.model import NULL, Api, Trace

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
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
class Links:
    """`api[i]` is the row of the call that launched record `i`, NULL where the file holds none.

    `has_calls[i]` says whether the record's source holds any host call at all, `in_graph[i]` whether the
    call launches a graph.
    """

    api: I64
    has_calls: Mask
    in_graph: Mask

    @property
    def linked(self) -> Mask:
        linked: Mask = self.api != NULL
        return linked


def link_kernels(trace: Trace) -> Links:
    """The launching call of each kernel."""
    return link(trace, trace.kernels)


def link_copies(trace: Trace) -> Links:
    """The launching call of each copy."""
    return link(trace, trace.copies)


def link(trace: Trace, records: Correlated) -> Links:
    """The launching call of each record. Where several calls share an id, a launch goes before other calls, then the outermost."""
    api = trace.api
    owners = _owners(trace)
    rows = len(records.source)
    if not len(api) or not rows:
        return Links(np.full(rows, NULL, np.int64), _in_sources(owners[records.source], owners[api.source], len(owners)),
                     np.zeros(rows, np.bool_))
    call_key, record_key = _keys(owners, api, records)
    launches = patterns.matching(trace.strings, api.name, patterns.LAUNCH)
    graphs = patterns.matching(trace.strings, api.name, patterns.GRAPH_LAUNCH)
    order = _by_preference(api, call_key, launches)
    keys = call_key[order]
    position = np.searchsorted(keys, record_key)
    candidate = np.minimum(position, max(len(keys) - 1, 0))
    found = np.zeros(rows, np.bool_) if not len(keys) else keys[candidate] == record_key
    found &= records.correlation != NULL
    linked = np.full(rows, NULL, np.int64)
    linked[found] = order[candidate[found]]
    graph_keys = np.unique(call_key[graphs & (api.correlation != NULL)])
    in_graph = np.isin(record_key, graph_keys) & (records.correlation != NULL)
    return Links(linked, _in_sources(owners[records.source], owners[api.source], len(owners)), in_graph)


def _by_preference(api: Api, key: I64, launches: Mask) -> I64:
    """Rows of calls that carry an id, by key; launches first within a key, then the outermost."""
    usable = np.flatnonzero(api.correlation != NULL)
    order = usable[np.argsort(key[usable], kind="stable")]
    if np.any(key[order[1:]] == key[order[:-1]]):
        order = usable[np.lexsort((-api.dur_ns[usable], api.start_ns[usable], ~launches[usable], key[usable]))]
    return order


def _in_sources(wanted: I64, present: I64, count: int) -> Mask:
    having = np.zeros(count, np.bool_)
    having[present] = True
    return having[wanted]


def _keys(owners: I64, api: Api, records: Correlated) -> tuple[I64, I64]:
    """One key per call and per record over (owner, process, id), the process only where both sides know it."""
    call_owner, record_owner = owners[api.source], owners[records.source]
    vague = np.zeros(len(owners), np.bool_)
    vague[call_owner[api.pid == NULL]] = True
    vague[record_owner[records.pid == NULL]] = True
    joined = pack([np.concatenate((call_owner, record_owner)),
                   np.concatenate((np.where(vague[call_owner], NULL, api.pid),
                                   np.where(vague[record_owner], NULL, records.pid))),
                   np.concatenate((api.correlation, records.correlation))])
    return joined[: len(api)], joined[len(api):]


def _owners(trace: Trace) -> I64:
    """For each source the source that holds its host calls: itself, or its sibling where the tool writes them apart.

    rocprofv3 writes kernels and host calls of one process to two CSV files. A source without calls is
    joined with the sources of the same pass, layer, host and process that have no kernels or copies.
    """
    count = len(trace.sources)
    owners = np.arange(count, dtype=np.int64)
    calls, device = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    calls[trace.api.source] = True
    device[trace.kernels.source] = True
    device[trace.copies.source] = True
    donors: dict[tuple[str, str, str, int], int] = {}
    for position, source in enumerate(trace.sources):
        if source.pid is not None and calls[position] and not device[position]:
            donors.setdefault((source.pass_name, source.layer, source.host, source.pid), position)
    for position, source in enumerate(trace.sources):
        if not calls[position] or not device[position]:
            owner = donors.get((source.pass_name, source.layer, source.host, source.pid or NULL))
            owners[position] = position if owner is None else owner
    return owners
