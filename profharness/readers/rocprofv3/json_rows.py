"""The records of one process in rocprofv3's JSON file as columns. Names stand before the records,
but nothing relies on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.bytes.json_walk import JsonWalk
from profharness.readers.rocprofv3.agents import Agent, Process, pci_id
from profharness.readers.rocprofv3.counters import join
from profharness.readers.rocprofv3.json_columns import DISPATCH, launch_columns, numbers, taken
from profharness.readers.rocprofv3.json_memory import MEMORY_PARTS, OPERATIONS, JsonMemory
from profharness.readers.rocprofv3.json_records import (
    AgentRecord,
    Call,
    Copy,
    CounterName,
    CounterRecord,
    Dispatch,
    Memory,
    Metadata,
    Names,
    Symbol,
)
from profharness.readers.rocprofv3.tables import RocmTables
from profharness.trace.columns.build import Growing
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Strings
from profharness.trace.places import command_name

_CALLS = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api")
_CALL = ("start", "end", "operation", "tid", "correlation")
_COPY = (
    "start",
    "end",
    "operation",
    "bytes",
    "source_agent",
    "target_agent",
    "stream",
    "correlation",
)


class ProcessRows:
    """Reads the parts of one process object, then adds them to the tables of the trace."""

    def __init__(self, strings: Strings) -> None:
        self.records = 0
        self.nameless = 0
        self.has_calls = False
        self.left_out: Counter[str] = Counter()
        self._strings = strings
        self._metadata = Metadata()
        self._names = Names()
        self._agents: dict[int, Agent] = {}
        self._symbols: dict[int, Symbol] = {}
        self._counters: dict[int, str] = {}
        self._kernels = Growing(*DISPATCH)
        self._counted = Growing(*DISPATCH)
        self._calls = Growing(*_CALL)
        self._copies = Growing(*_COPY)
        self._memory = JsonMemory()
        self._values: list[tuple[int, int, float]] = []

    @property
    def host(self) -> str:
        return self._metadata.node.hostname

    @property
    def pid(self) -> int:
        return self._metadata.pid

    @property
    def name(self) -> str:
        """What the process is called, by its command."""
        try:
            return command_name(msgspec.json.decode(self._metadata.command, type=list[str]))
        except NOT_JSON:
            return ""

    def read(self, part: str, walk: JsonWalk) -> None:
        """Use up one value of the process object."""
        readers: dict[str, Callable[[JsonWalk], None]] = {
            "metadata": self._read_metadata,
            "strings": self._read_names,
            "agents": self._read_agents,
            "counters": self._read_counter_names,
            "kernel_symbols": self._read_symbols,
            "callback_records": self._read_callbacks,
            "buffer_records": self._read_records,
        }
        if part in readers:
            readers[part](walk)
        else:
            walk.skip()

    def add_to(self, tables: RocmTables, source: int) -> None:
        """Add all that was read. The columns are used up."""
        process = Process(
            self.host, self.pid, {agent.number: agent for agent in self._agents.values()}
        )
        first = tables.kernels
        kernels = taken(self._kernels)
        tables.add_kernels(process, self._with_symbols(kernels), source)
        if len(self._counted):
            counted = taken(self._counted)
            joined = join(kernels["dispatch"], counted["dispatch"])
            untraced = {name: column[joined.untraced] for name, column in counted.items()}
            tables.add_kernels(process, self._with_symbols(untraced), source)
            self._add_values(tables, joined.kernel + first, source)
        copies = self._copies
        tables.add_copies(
            process,
            {
                "start": copies.take("start"),
                "end": copies.take("end"),
                "name": self._operations(copies.take("operation"))[1],
                "bytes": copies.take("bytes"),
                "source_agent": self._agent_numbers(copies.take("source_agent")),
                "target_agent": self._agent_numbers(copies.take("target_agent")),
                "stream": copies.take("stream"),
                "correlation": copies.take("correlation"),
            },
            source,
        )
        self._add_calls(tables, process, source)
        memory = self._memory.taken(self._agent_numbers, self._operations)
        self.left_out += memory.add_to(tables, process, source)

    def _add_calls(self, tables: RocmTables, process: Process, source: int) -> None:
        calls = self._calls
        correlation = calls.take("correlation")
        kind, name = self._operations(calls.take("operation"))
        domain = tables.domains(kind)
        marks = np.flatnonzero(domain == self._strings.find("marker"))
        marked = set(correlation[marks].tolist())
        texts = {
            text.key: self._strings.code(text.value)
            for text in self._names.marker_api
            if text.key in marked
        }
        name[marks] = [
            texts.get(key, operation)
            for key, operation in zip(
                correlation[marks].tolist(), name[marks].tolist(), strict=True
            )
        ]
        tables.add_calls(
            process,
            {
                "start": calls.take("start"),
                "end": calls.take("end"),
                "name": name,
                "domain": domain,
                "tid": calls.take("tid"),
                "correlation": correlation,
            },
            source,
        )

    def _add_values(self, tables: RocmTables, kernel: I64, source: int) -> None:
        names = {
            handle: self._strings.code(self._counters.get(handle) or f"counter {handle}")
            for handle in {handle for _, handle, _ in self._values}
        }
        record = np.array([record for record, _, _ in self._values], np.int64)
        name = np.array([names[handle] for _, handle, _ in self._values], np.int64)
        tables.add_counters(
            kernel[record],
            name,
            np.array([value for _, _, value in self._values], np.float64),
            source,
        )

    def _read_metadata(self, walk: JsonWalk) -> None:
        self._metadata = walk.value_or(Metadata, Metadata())

    def _read_names(self, walk: JsonWalk) -> None:
        self._names = walk.value_or(Names, Names())

    def _read_agents(self, walk: JsonWalk) -> None:
        for batch in walk.batches(AgentRecord):
            for record in batch:
                self._agents[record.id.handle] = Agent(
                    number=record.logical_node_id
                    if record.logical_node_id != NULL
                    else record.node_id,
                    node=record.node_id,
                    is_gpu=record.type == 2,
                    architecture=record.name,
                    product=record.product_name,
                    vendor=record.vendor_name,
                    compute_units=record.cu_count or None,
                    dies=record.num_xcc or None,
                    max_clock_mhz=record.max_engine_clk_fcompute or None,
                    location=record.location_id or None,
                    domain=record.domain,
                    handle=record.id.handle,
                    type_number=record.logical_node_type_id,
                    pci_id=pci_id(record.vendor_id, record.device_id),
                )

    def _read_counter_names(self, walk: JsonWalk) -> None:
        for batch in walk.batches(CounterName):
            self._counters.update((counter.id.handle, counter.name) for counter in batch)

    def _read_symbols(self, walk: JsonWalk) -> None:
        for batch in walk.batches(Symbol):
            self._symbols.update((symbol.kernel_id, symbol) for symbol in batch)

    def _read_callbacks(self, walk: JsonWalk) -> None:
        for part in walk.members():
            if part == "counter_collection":
                for batch in walk.batches(CounterRecord):
                    self._add_counted(batch)
            else:
                self._count(part, walk)

    def _read_records(self, walk: JsonWalk) -> None:
        for part in walk.members():
            if part == "kernel_dispatch":
                for kernels in walk.batches(Dispatch):
                    self._add_dispatches(kernels)
            elif part == "memory_copy":
                for copies in walk.batches(Copy):
                    self._add_copies(copies)
            elif part in MEMORY_PARTS:
                for records in walk.batches(Memory):
                    self.records += len(records)
                    self._memory.add(records)
            elif part in _CALLS:
                for calls in walk.batches(Call):
                    self._take_calls(calls)
            else:
                self._count(part, walk)

    def _count(self, part: str, walk: JsonWalk) -> None:
        if walk.peek() != b"[":
            walk.skip()
            return
        self.left_out[part] += walk.count()

    def _add_dispatches(self, batch: Sequence[Dispatch]) -> None:
        self.records += len(batch)
        self._kernels.add(
            len(batch),
            start=[d.start_timestamp for d in batch],
            end=[d.end_timestamp for d in batch],
            tid=[d.thread_id for d in batch],
            stream=numbers([d.stream_id.handle for d in batch]),
            correlation=[d.correlation_id.internal for d in batch],
            **launch_columns([d.dispatch_info for d in batch]),
        )

    def _add_counted(self, batch: Sequence[CounterRecord]) -> None:
        first = len(self._counted)
        self.records += len(batch)
        data = [record.dispatch_data for record in batch]
        self._counted.add(
            len(batch),
            start=[d.start_timestamp for d in data],
            end=[d.end_timestamp for d in data],
            tid=[r.thread_id for r in batch],
            stream=numbers([r.stream_id.handle for r in batch]),
            correlation=[d.correlation_id.internal for d in data],
            **launch_columns([d.dispatch_info for d in data]),
        )
        self._values += [
            (row, value.counter_id.handle, value.value)
            for row, record in enumerate(batch, first)
            for value in record.records
        ]

    def _take_calls(self, batch: Sequence[Call]) -> None:
        self.has_calls = True
        self.records += len(batch)
        self._calls.add(
            len(batch),
            start=[c.start_timestamp for c in batch],
            end=[c.end_timestamp for c in batch],
            operation=[c.kind * OPERATIONS + c.operation for c in batch],
            tid=[c.thread_id for c in batch],
            correlation=[c.correlation_id.internal for c in batch],
        )

    def _add_copies(self, batch: Sequence[Copy]) -> None:
        self.records += len(batch)
        self._copies.add(
            len(batch),
            start=[c.start_timestamp for c in batch],
            end=[c.end_timestamp for c in batch],
            operation=[c.kind * OPERATIONS + c.operation for c in batch],
            bytes=[c.bytes for c in batch],
            source_agent=numbers([c.src_agent_id.handle for c in batch]),
            target_agent=numbers([c.dst_agent_id.handle for c in batch]),
            stream=numbers([c.stream_id.handle for c in batch]),
            correlation=[c.correlation_id.internal for c in batch],
        )

    def _with_symbols(self, columns: dict[str, I64]) -> dict[str, I64]:
        """The columns of dispatches with names and registers of their kernels."""
        used, row = np.unique(columns["kernel"], return_inverse=True)
        symbols = [self._symbols.get(number) for number in used.tolist()]
        names = [
            self._strings.code(
                symbol.formatted_kernel_name or symbol.kernel_name.removesuffix(".kd")
                if symbol
                else f"kernel {number}"
            )
            for number, symbol in zip(used.tolist(), symbols, strict=True)
        ]
        present = [symbol or Symbol(NULL) for symbol in symbols]
        if len(used):
            self.nameless += int(
                np.isin(
                    row, [place for place, symbol in enumerate(symbols) if symbol is None]
                ).sum()
            )

        def of_symbol(values: list[int]) -> I64:
            return np.array(values, np.int64)[row] if values else np.zeros(0, np.int64)

        static, whole = of_symbol([symbol.group_segment_size for symbol in present]), columns["lds"]
        split = (static != NULL) & (whole >= static)
        return {
            **columns,
            "name": of_symbol(names),
            "agent": self._agent_numbers(columns["agent"]),
            "vgpr": of_symbol([symbol.arch_vgpr_count for symbol in present]),
            "accum_vgpr": of_symbol([symbol.accum_vgpr_count for symbol in present]),
            "sgpr": of_symbol([symbol.sgpr_count for symbol in present]),
            "lds": np.where(split, static, whole),
            "lds_dynamic": np.where(split, whole - static, NULL),
        }

    def _agent_numbers(self, handles: I64) -> I64:
        """Numbers of agents; an agent that the file does not list keeps its handle."""
        used, row = np.unique(handles, return_inverse=True)
        numbers = [
            self._agents[handle].number if handle in self._agents else handle
            for handle in used.tolist()
        ]
        return np.array(numbers, np.int64)[row] if numbers else np.zeros(0, np.int64)

    def _operations(self, packed: I64) -> tuple[I64, I64]:
        """Codes of the kind's and the operation's name."""
        used, row = np.unique(packed, return_inverse=True)
        kinds, names = [], []
        for kind, operation in (divmod(number, OPERATIONS) for number in used.tolist()):
            record_kind = (
                self._names.buffer_records[kind]
                if 0 <= kind < len(self._names.buffer_records)
                else None
            )
            named = record_kind is not None and 0 <= operation < len(record_kind.operations)
            kinds.append(self._strings.code(record_kind.kind if record_kind else f"kind {kind}"))
            names.append(
                self._strings.code(
                    record_kind.operations[operation]
                    if record_kind and named
                    else f"operation {kind}.{operation}"
                )
            )
        if not len(used):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.array(kinds, np.int64)[row], np.array(names, np.int64)[row]
