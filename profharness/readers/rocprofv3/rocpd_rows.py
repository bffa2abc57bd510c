"""The rows of one process in a rocpd database, fetched in batches into columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.rocprofv3.agents import Agent, Process, pci_id
from profharness.readers.rocprofv3.json_records import AgentRecord
from profharness.readers.rocprofv3.memory import MEMORY_COLUMNS, MemoryRows, action_of
from profharness.readers.rocprofv3.rocpd_counts import count_values
from profharness.readers.rocprofv3.rocpd_graphs import graph_launches
from profharness.readers.rocprofv3.rocpd_owners import Owner, text_of
from profharness.readers.rocprofv3.rocpd_roles import ROLES, role_of
from profharness.readers.rocprofv3.rocpd_scopes import Scope
from profharness.readers.rocprofv3.rocpd_tables import OwnerTables
from profharness.readers.rocprofv3.rocpd_views import (
    AGENT,
    BATCH_ROWS,
    CALL,
    COPY,
    COUNTED,
    INSTANT,
    KERNEL,
    MEMORY,
    SYMBOL,
    TEXTS,
    Columns,
    chosen,
    with_times,
)
from profharness.readers.rocprofv3.tables import RocmTables, domain_of
from profharness.rundir.databases.guard import DAMAGED
from profharness.trace.columns.build import Growing, Pool, per_text
from profharness.trace.columns.table import NULL
from profharness.trace.launches import Mask
from profharness.trace.model import I64, Strings

_DISPATCHES, _GRAPH = "rocpd_kernel_dispatch", "graph_exec_id"
# tables whose records have no place in a trace
_UNREAD = {
    "rocpd_hip_event": "HIP events",
    "rocpd_gpu_pc_sample": "samples of the program counter",
}


class _Extra(msgspec.Struct):
    """A marker's own text."""

    message: str = ""


class ProcessReader:
    """Reads one process into the tables of the trace. What a damaged file still gives is kept, and
    `damage` says what ended it.

    `left_out` counts what would be analysed and cannot be, `unread` records of kinds that are not
    analysed.
    """

    def __init__(
        self,
        file: Scope,
        owner: Owner,
        tables: RocmTables,
        source: int,
        *,
        alone: bool,
    ) -> None:
        self.records = 0
        self.damage = ""
        self.has_calls = self._counted = False
        self.left_out: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self._file = OwnerTables(file, owner, alone=alone)
        self._tables = tables
        self._source = source
        self._texts: Pool[Any] = Pool(
            lambda value: NULL if value is None else tables.strings.code(str(value))
        )
        self._messages: Pool[Any] = Pool(partial(_message_code, tables.strings, self.left_out))

    def read(self) -> None:
        """Kernels with their counters, copies, host calls and markers, memory; the rest is
        counted.
        """
        try:
            agents = self._agents()
        except DAMAGED as error:
            self.damage, agents = str(error), {}
        process = Process(self._file.owner.host, self._file.owner.pid, agents)
        for part in (
            self._read_kernels,
            self._read_copies,
            self._read_calls,
            self._read_instants,
            self._read_memory,
            self._read_graphs,
            self._count_unread,
        ):
            try:
                part(process)
            except DAMAGED as error:
                self.damage = self.damage or str(error)

    def _read_kernels(self, process: Process) -> None:
        first = self._tables.kernels
        columns = self._columns("kernels", KERNEL)
        self._count_hidden("kernels", "rocpd_kernel_dispatch", len(columns["start"]))
        dispatch = columns["dispatch"]
        self._tables.add_kernels(process, self._with_symbols(columns), self._source)
        self._read_counters(dispatch, first)

    def _read_counters(self, dispatch: I64, first: int) -> None:
        """Counter values of the dispatches; those that were sampled while a kernel ran belong to no
        view of sums (`sample_id` is set).
        """
        view, wanted = next(((v, w) for v, w in COUNTED if self._file.holds(v)), ("", {}))
        names = chosen(wanted, self._file.columns(view)) if view else {}
        if not len(dispatch) or len(names) < len(wanted) or not names:
            return
        sampled = "sample_id IS NULL" if "sample_id" in self._file.columns(view) else ""
        selected = [f'"{names[name]}"' for name in ("dispatch", "counter", "value")]
        rows = self._file.select(view, selected, sampled).fetchall()
        if not rows:
            return
        order = np.argsort(dispatch, kind="stable")
        wanted_dispatch = _whole(tuple(row[0] for row in rows))
        at = np.minimum(np.searchsorted(dispatch[order], wanted_dispatch), len(order) - 1)
        name = np.array([self._texts[row[1]] for row in rows], np.int64)
        value = np.array(
            [row[2] if isinstance(row[2], int | float) else np.nan for row in rows], np.float64
        )
        self._counted = bool(np.isfinite(value).any())
        with_dispatch = dispatch[order][at] == wanted_dispatch
        self._tables.add_counters(
            order[at[with_dispatch]] + first,
            name[with_dispatch],
            value[with_dispatch],
            self._source,
        )

    def _read_copies(self, process: Process) -> None:
        columns = self._columns("memory_copies", COPY)
        self._count_hidden("copies", "rocpd_memory_copy", len(columns["start"]))
        self._tables.add_copies(process, columns, self._source)

    def _read_calls(self, process: Process) -> None:
        shown = self._add_calls(process, "regions", CALL)
        self._count_hidden("host calls", "rocpd_region", shown)

    def _read_instants(self, process: Process) -> None:
        """Calls that began and ended in the same ns; of them the file keeps the names of markers
        only.
        """
        if self._file.holds("samples"):
            self._add_calls(process, "samples", INSTANT)

    def _read_memory(self, process: Process) -> None:
        """What the process held of each device's memory, and when the runtime took or gave back
        scratch memory.
        """
        columns = self._columns("memory_allocations", MEMORY)
        self._count_hidden("memory records", "rocpd_memory_allocate", len(columns["start"]))
        scratch = columns["domain"] == self._tables.strings.code("SCRATCH")
        action = per_text(self._tables.strings, columns["name"], action_of)
        self.unread += self._tables.add_memory(
            process,
            MemoryRows(
                action=action[~scratch],
                **{name: columns[name][~scratch] for name in MEMORY_COLUMNS},
            ),
            self._source,
        )
        what, row = np.unique(columns["name"][scratch], return_inverse=True)
        names = np.array([self._scratch_name(int(code)) for code in what], np.int64)
        events = {name: columns[name][scratch] for name in ("start", "end", "tid")}
        self._tables.add_events(
            process, {**events, "name": names[row] if len(names) else row}, "scratch", self._source
        )

    def _read_graphs(self, process: Process) -> None:
        if self._file.holds("rocpd_graph_launch"):
            launches = graph_launches(self._file, self._tables.strings)
            self._tables.add_events(process, launches, "graph", self._source)

    def _scratch_name(self, code: int) -> int:
        """The name that the tool's other forms have for what was done about scratch memory."""
        text = "" if code == NULL else self._tables.strings[code]
        text = text.replace("RECLAIM", "ASYNC_RECLAIM")
        return self._tables.strings.code(f"SCRATCH_MEMORY_{text}")

    def _count_unread(self, process: Process) -> None:  # noqa: ARG002  every part is called alike
        """Counter values of no kernel, and records of kinds that have no place in a trace."""
        if self.damage:
            return
        for table, words in _UNREAD.items():
            if self._file.holds(table):
                self.unread[words] += self._file.count(table)
        if "event_id" in self._file.columns("rocpd_pmc_event"):
            values = count_values(self._file, counted=self._counted)
            self.left_out.update(values.left_out)
            self.unread["values of counters that were sampled while kernels ran"] += values.sampled

    def _count_hidden(self, rows: str, table: str, shown: int) -> None:
        """A view joins its table to others, and shows no row that lacks its place there."""
        if not self.damage and self._file.holds(table):
            self.left_out[f"{rows} that the file's own view does not show, or without times"] += (
                max(self._file.count(table) - shown, 0)
            )

    def _add_calls(self, process: Process, view: str, wanted: Columns) -> int:
        """Add the calls of a view; the answer is how many rows it shows."""
        columns = self._columns(view, wanted)
        strings = self._tables.strings
        recorded, row = np.unique(columns["domain"], return_inverse=True)
        instant = view == "samples"
        roles = [
            role_of(domain_of(strings[code]) if code != NULL else "", instant=instant)
            for code in recorded.tolist()
        ]
        rows = {
            role: np.isin(row, np.flatnonzero([one == role for one in roles])) for role in ROLES
        }
        marker, call = rows["marker"], rows["call"]
        columns["name"] = np.where(
            marker & (columns["message"] != NULL), columns["message"], columns["name"]
        )

        def of(chosen: Mask) -> dict[str, I64]:
            return {name: column[chosen] for name, column in columns.items() if name != "message"}

        self._tables.add_events(process, of(rows["driver"]), "kfd", self._source)
        self._tables.add_functions(process, of(rows["function"]), self._source)
        self.unread["samples of call stacks and devices"] += int(rows["sampled"].sum())
        if instant:
            self.left_out["host calls shorter than a nanosecond"] += int(call.sum())
            call = np.zeros(len(call), np.bool_)
        kept = of(marker | call)
        kept["domain"] = self._tables.domains(kept["domain"])
        self._tables.add_calls(process, kept, self._source)
        self.has_calls |= bool(call.any())
        return len(marker)

    def _columns(self, view: str, wanted: Columns) -> dict[str, I64]:
        """Columns of a view; texts as codes of the pool. Columns that it does not have are NULL."""
        names = chosen(wanted, self._file.columns(view))
        if view == "kernels" and self._file.any(_DISPATCHES, _GRAPH):
            names["graph"] = _GRAPH
        if not names:  # no such view
            return {name: np.empty(0, np.int64) for name in wanted}
        numbers = [name for name in names if name not in TEXTS]
        texts = [name for name in names if name in TEXTS]
        grown = Growing(*numbers, *texts)
        try:
            for rows in self._batches(
                view, [self._expression(view, names[name]) for name in (*numbers, *texts)]
            ):
                self._add(grown, rows, numbers, texts)
        except DAMAGED as error:
            self.damage = self.damage or str(error)
        count = len(grown)
        self.records += count
        columns = {name: grown.take(name) for name in (*numbers, *texts)}
        return with_times(
            {name: np.full(count, NULL, np.int64) for name in wanted if name not in columns}
            | columns
        )

    def _add(
        self,
        grown: Growing,
        rows: list[tuple[Any, ...]],
        numbers: Sequence[str],
        texts: Sequence[str],
    ) -> None:
        columns = list(zip(*rows, strict=True))
        pools = {"message": self._messages}
        codes = {
            name: np.fromiter(
                map(pools.get(name, self._texts).__getitem__, column), np.int64, len(rows)
            )
            for name, column in zip(texts, columns[len(numbers) :], strict=True)
        }
        grown.add(
            len(rows),
            **{name: _whole(column) for name, column in zip(numbers, columns, strict=False)},
            **codes,
        )

    def _expression(self, view: str, column: str) -> str:
        """The column of a view; but LDS from its table where the view rounds it up (schema 4.1),
        and the graph of a kernel, which views leave out.
        """
        if column == "lds_block_size" and self._file.any(_DISPATCHES, "group_segment_size"):
            return self._file.column_of(_DISPATCHES, "group_segment_size", view)
        if column == _GRAPH and _GRAPH not in self._file.columns(view):
            return self._file.column_of(_DISPATCHES, _GRAPH, view)
        return f'"{column}"'

    def _batches(self, view: str, selected: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._file.select(view, selected)
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield rows

    def _with_symbols(self, columns: dict[str, I64]) -> dict[str, I64]:
        """Names and registers of the kernels, looked up once per kernel; dynamic LDS is what a
        launch has beyond its kernel's own.
        """
        rows = self._file.rows("rocpd_info_kernel_symbol", SYMBOL)
        symbols = {row[0]: row for row in rows}
        used, row = np.unique(columns["kernel"], return_inverse=True)
        symbol_rows = [
            symbols.get(number, (number, f"kernel {number}", "", *[NULL] * 4))
            for number in used.tolist()
        ]
        names = [
            self._texts[text_of(symbol[1]) or text_of(symbol[2]).removesuffix(".kd")]
            for symbol in symbol_rows
        ]
        table = np.array(
            [
                [value if isinstance(value, int) else NULL for value in symbol[3:]]
                for symbol in symbol_rows
            ],
            np.int64,
        ).reshape(-1, 4)[row]
        static, whole = table[:, 0], columns["lds"]
        split = (static != NULL) & (whole >= static)
        return {
            **{name: column for name, column in columns.items() if name != "kernel"},
            "name": np.array(names, np.int64)[row],
            "lds": np.where(split, static, whole),
            "lds_dynamic": np.where(split, whole - static, NULL),
            "vgpr": table[:, 1],
            "accum_vgpr": table[:, 2],
            "sgpr": table[:, 3],
        }

    def _agents(self) -> dict[int, Agent]:
        """The processors by their number among those that the process may use. Network cards, which
        files from 3.0.1 on list too, are none.
        """
        agents = {}
        for row in self._file.rows("rocpd_info_agent", AGENT):
            number, node, type_number, kind, name, generic, product, vendor, extra = row
            record = self._record(extra)
            if not isinstance(number, int) or kind not in ("CPU", "GPU"):
                continue
            agents[number] = Agent(
                number=number,
                node=node if isinstance(node, int) else number,
                is_gpu=kind == "GPU",
                architecture=text_of(generic) or text_of(name),
                product=text_of(product),
                vendor=text_of(vendor),
                compute_units=record.cu_count or None,
                dies=record.num_xcc or None,
                max_clock_mhz=record.max_engine_clk_fcompute or None,
                location=record.location_id or None,
                domain=record.domain,
                type_number=type_number,
                pci_id=pci_id(record.vendor_id, record.device_id),
            )
        return agents

    def _record(self, text: Any) -> AgentRecord:
        try:
            if isinstance(text, str):
                return msgspec.json.decode(text, type=AgentRecord)
        except NOT_JSON:
            self.left_out["facts of a device or CPU that cannot be read"] += 1
        return AgentRecord()


def _whole(column: tuple[Any, ...]) -> I64:
    """Integers of a column, NULL for what is none."""
    try:
        return np.fromiter(column, np.int64, len(column))
    except (TypeError, ValueError, OverflowError):
        return np.array([value if isinstance(value, int) else NULL for value in column], np.int64)


def _message_code(strings: Strings, left_out: Counter[str], extra: Any) -> int:
    """The code of a marker's text in an event's extra data; NULL for none and what is no JSON."""
    if not isinstance(extra, str) or extra in ("", "{}"):
        return NULL
    try:
        message = msgspec.json.decode(extra, type=_Extra).message
    except NOT_JSON:
        left_out["different texts of markers, which are no JSON"] += 1
        return NULL
    return strings.code(message) if message else NULL
