"""A trace set aside as Parquet, with what is needed to know before it is taken up again.

Its records lie in a folder, kernels and copies in order of device and time. What identifies them
(`sketch`), when they begin, and with which others they must be looked at together travels alone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from profharness.analysis.communication.collectives import Arrivals
from profharness.findings import Finding
from profharness.trace.clocks.align import Conversion, moved
from profharness.trace.columns.keys import distinct, pack
from profharness.trace.columns.table import NULL, Table
from profharness.trace.enrich import gives_geometry, takes_geometry
from profharness.trace.launches import correlated_process
from profharness.trace.merge import merge_by_table
from profharness.trace.model import I32, Copies, Counters, Kernels, Source, Strings, Trace
from profharness.trace.parts import cutting
from profharness.trace.parts.cutting import Cut, StepsFound
from profharness.trace.parts.sketch import sketch
from profharness.understand.run_clock import AlignedTrace
from profharness.writers import columns
from profharness.writers.metadata import Outline, outline

Link = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class SpilledTrace:
    """Of the records in `folder` what travels alone.

    `first_ns` is their earliest start, None without any; `dropped` counts records of ranks that
    were not wanted; `findings` are on the trace's clock; `sizes` are its numbers of ops and
    kernels. Traces that share one of the `links` refer to each other's records. `geometry_ranks`
    are the ranks whose launch geometry is lent to another pass, or taken from one (None: a rank
    that no file states). `arrivals` are the collectives of its ranks, where they may be needed, and
    `conversion` is what puts the times as they were set aside on the clock of other files; all else
    that is told of times is on that clock.
    """

    folder: Path
    sketch: Trace
    outline: Outline
    first_ns: int | None
    steps: StepsFound
    links: frozenset[Link]
    geometry_ranks: frozenset[int | None] = frozenset()
    dropped: Counter[str] = field(default_factory=Counter)
    findings: tuple[Finding, ...] = ()
    sizes: tuple[int, int] = (0, 0)
    arrivals: tuple[Arrivals, ...] = ()
    conversion: Conversion | None = None

    def read(self, strings: Strings) -> Trace:
        """The records as they were set aside, by device and time; texts get codes of `strings`, new
        ones where need be.
        """
        trace = columns.read(self.folder, replace(self.sketch, strings=strings))
        return trace if self.conversion is None else moved(trace, self.conversion)

    def on_clock(self, sources: Sequence[Source], conversion: Conversion | None) -> SpilledTrace:
        """The same with its times converted when they are read."""
        found = replace(self, sketch=replace(self.sketch, sources=tuple(sources)))
        if conversion is None:
            return found

        def there(*times: int) -> tuple[int, ...]:
            return tuple(conversion(np.array(times, np.int64)).tolist())

        window, first = self.steps.window, self.first_ns
        began = self.outline.first_ns
        return replace(
            found,
            sketch=moved(found.sketch, conversion),
            outline=replace(self.outline, first_ns=None if began is None else there(began)[0]),
            first_ns=None if first is None else there(first)[0],
            steps=self.steps
            if window is None
            else replace(self.steps, window=(there(window[0])[0], there(window[1])[0])),
            conversion=conversion,
        )


@dataclass(frozen=True)
class Spill:
    """Sets the wanted ranks' records of each part aside in a folder of its own under `scratch`."""

    scratch: Path
    cut: Cut

    def __call__(self, part: AlignedTrace, name: str) -> SpilledTrace:
        """Raises OSError where the folder cannot be written."""
        return replace(spill(part.trace, self.scratch / name, self.cut), findings=part.findings)


def spill(trace: Trace, folder: Path, cut: Cut) -> SpilledTrace:
    """Leave the wanted ranks' records in `folder`. Raises OSError where it cannot be written."""
    geometry_ranks = frozenset(_geometry_ranks(trace))
    dropped: Counter[str] = Counter()
    if cut.ranks is not None and not all(source.rank in cut.ranks for source in trace.sources):
        trace, dropped = cutting.cut(trace, Cut(ranks=cut.ranks), 0)
    order = Order.of(trace)
    trace = order.put(trace)
    columns.write(replace(trace, problems=()), folder)
    order.write(folder)
    whole = outline(trace)
    return SpilledTrace(
        folder,
        replace(
            sketch(trace),
            problems=trace.problems,
            statistics=trace.statistics,
            tool_metrics=trace.tool_metrics,
        ),
        replace(whole, content=hashlib.blake2b(whole.content).digest()),
        cutting.first_ns(trace),
        cutting.steps_found(trace, cut),
        frozenset(_links(trace)),
        geometry_ranks,
        dropped,
        sizes=(len(trace.ops), len(trace.kernels)),
    )


def in_order(trace: Trace) -> Trace:
    """Kernels and copies by device and start; hardware counters follow their kernels."""
    return Order.of(trace).put(trace)


def _by_time(work: Kernels | Copies) -> I32:
    order: I32 = np.lexsort((work.start_ns, work.device)).astype(np.int32)
    return order


def _inverse(order: I32) -> I32:
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


@dataclass(frozen=True, eq=False)
class Order:
    """What `in_order` changes and Parquet does not keep: the rows that kernels and copies had, and
    the order of the texts.
    """

    kernels: I32
    copies: I32
    texts: list[str]

    @classmethod
    def of(cls, trace: Trace) -> Order:
        """The order of a trace that is going to be set aside."""
        return cls(_by_time(trace.kernels), _by_time(trace.copies), trace.strings.texts)

    def put(self, trace: Trace) -> Trace:
        """The trace by device and start."""
        counters = trace.counters
        if len(counters) and len(self.kernels):
            counters = counters.with_columns(
                kernel=np.where(
                    counters.kernel < 0, counters.kernel, _inverse(self.kernels)[counters.kernel]
                )
            )
        return replace(
            trace,
            kernels=trace.kernels.take(self.kernels),
            copies=trace.copies.take(self.copies),
            counters=counters,
        )

    def write(self, folder: Path) -> None:
        """Beside the tables."""
        (folder / "texts.json").write_text(json.dumps(self.texts))
        for name, order in (("kernels", self.kernels), ("copies", self.copies)):
            if len(order):
                np.save(folder / f"{name}.order.npy", order)

    @classmethod
    def read(cls, folder: Path) -> Order:
        """What `write` left."""
        kernels, copies = (
            np.load(path)
            if (path := folder / f"{name}.order.npy").exists()
            else np.zeros(0, np.int32)
            for name in ("kernels", "copies")
        )
        return cls(kernels, copies, json.loads((folder / "texts.json").read_text()))

    def restored(self, name: str, table: Table) -> Table:
        """One of the tables as it was."""
        if isinstance(table, Counters):
            return (
                table.with_columns(
                    kernel=np.where(table.kernel < 0, table.kernel, self.kernels[table.kernel])
                )
                if len(self.kernels)
                else table
            )
        order = {"kernels": self.kernels, "copies": self.copies}.get(name)
        return table if order is None or not len(order) else table.take(_inverse(order))


def merge_spilled(parts: Sequence[SpilledTrace]) -> Trace:
    """What `merge` makes of the traces that were set aside, in the memory of the result and of one
    table of it; at least one part is needed.
    """
    orders = [Order.read(part.folder) for part in parts]
    heads = [
        replace(part.sketch, strings=Strings(order.texts))
        for part, order in zip(parts, orders, strict=True)
    ]

    def table(name: str, position: int, strings: Strings) -> Table:
        in_time_order = columns.read_table(
            parts[position].folder, name, type(getattr(heads[position], name)), strings
        )
        return orders[position].restored(name, in_time_order)

    return merge_by_table(heads, [part.sizes for part in parts], table, coded=True)[0]


def linked_groups(links: Sequence[frozenset[Link]]) -> list[list[int]]:
    """Positions of the parts (given by their links) that must be in memory at once, in the order of
    the first of each group.
    """
    leader: list[int] = list(range(len(links)))

    def lead(position: int) -> int:
        while leader[position] != position:
            leader[position] = leader[leader[position]]
            position = leader[position]
        return position

    first: dict[Link, int] = {}
    for position, own_links in enumerate(links):
        for link in own_links:
            earlier, later = sorted((lead(position), lead(first.setdefault(link, position))))
            leader[later] = earlier
    groups: dict[int, list[int]] = {}
    for position in range(len(links)):
        groups.setdefault(lead(position), []).append(position)
    return list(groups.values())


def _geometry_ranks(trace: Trace) -> Iterator[int | None]:
    return (
        source.rank
        for position, source in enumerate(trace.sources)
        if gives_geometry(source) or takes_geometry(trace, position)
    )


def _links(trace: Trace) -> Iterator[Link]:
    """The processes of passes, whose spans share tracks and whose marks say which point it is; and
    sources whose launches stand in another file.
    """
    for host, pass_name, rank, pid in _processes(trace):
        yield "process", host, pass_name, rank, pid
    calls, device = (
        set(distinct(trace.api.source).tolist()),
        set(np.unique(np.concatenate((trace.kernels.source, trace.copies.source))).tolist()),
    )
    for position, source in enumerate(trace.sources):
        if source.pid is None:
            continue
        if source.pass_name:
            yield "points", source.host, source.pass_name, source.pid
        if (position in calls) != (position in device):
            yield "launches", correlated_process(source)


def _processes(trace: Trace) -> set[tuple[str, str, int, int]]:
    """Host, pass, rank and pid of all records that belong to a process of a pass."""
    processes: set[tuple[str, str, int, int]] = set()
    for table in (trace.kernels, trace.copies, trace.api, trace.ops, trace.marks):
        if len(table):
            names = (table.source, table.host, table.rank, table.pid)
            first = np.unique(pack(names), return_index=True)[1]
            processes |= {_process(trace, *(int(column[row]) for column in names)) for row in first}
    processes |= {
        _process(trace, int(position), NULL, NULL, NULL)
        for position in np.unique(trace.requests.source)
    }
    return {process for process in processes if process[1]}


def _process(
    trace: Trace, source: int, host: int, rank: int, pid: int
) -> tuple[str, str, int, int]:
    origin = trace.sources[source] if source >= 0 else Source("", "")
    return (
        trace.strings[host] or origin.host,
        origin.pass_name,
        rank if rank != NULL else _or_null(origin.rank),
        pid if pid != NULL else _or_null(origin.pid),
    )


def _or_null(number: int | None) -> int:
    return NULL if number is None else number
