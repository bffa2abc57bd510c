"""Few records that stand for many: one of each process, queue and domain, so that what identifies records can travel alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from profharness.trace.keys import Integers, pack
from profharness.trace.merge import Places, place_tables
from profharness.trace.model import Counters, Marks, Ops, Requests, Samples, Strings, Table, Trace

TableT = TypeVar("TableT", bound=Table)


def sketch(trace: Trace) -> Trace:
    """The trace's sources, devices and streams, with the first record of each kind of device work and of each domain of calls.

    Its strings are those that these records need. Names, points and operators are left out.
    """
    strings = Strings()
    kernels, copies, api = trace.kernels, trace.copies, trace.api
    few_kernels = _first(kernels, (kernels.source, kernels.host, kernels.rank, kernels.pid, kernels.device, kernels.stream, kernels.queue))
    few_copies = _first(copies, (copies.source, copies.host, copies.rank, copies.pid, copies.device, copies.stream))
    few_calls = _first(api, (api.source, api.domain))

    def recoded(codes: Integers) -> list[int]:
        return [strings.code(trace.strings[code]) if code >= 0 else code for code in codes.tolist()]

    return replace(
        trace, strings=strings, kernels=few_kernels.with_columns(host=recoded(few_kernels.host), name=-1, point=-1, op=-1),
        copies=few_copies.with_columns(host=recoded(few_copies.host), name=-1, point=-1, kind=-1),
        api=few_calls.with_columns(host=recoded(few_calls.host), domain=recoded(few_calls.domain), name=-1, point=-1),
        ops=Ops.empty(), marks=Marks.empty(), samples=Samples.empty(), counters=Counters.empty(), requests=Requests.empty(), statistics=())


def placed(trace: Trace, places: Places, pools: Trace) -> Trace:
    """A part among the pools that were joined from sketches; its codes are of `pools.strings` already."""
    return replace(trace, sources=pools.sources, devices=pools.devices, streams=pools.streams, strings=pools.strings,
                   **place_tables(trace, places))  # type: ignore[arg-type] # each name maps to its own kind of table


def _first(table: TableT, columns: Sequence[Integers]) -> TableT:
    if not len(table):
        return table
    return table.take(np.sort(np.unique(pack(columns), return_index=True)[1]))
