"""The rows of rocprofv3's CSV files of one process, as the columns that the trace's tables are
built from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.arrow_csv import CsvColumns
from profharness.readers.bytes.limits import whole
from profharness.readers.left_out import left_out
from profharness.readers.rocprofv3.agents import Agent, Process
from profharness.readers.rocprofv3.counters import join
from profharness.readers.rocprofv3.csv_kinds import COLUMNS, MAY_BE_EMPTY, Kind
from profharness.readers.rocprofv3.memory import (
    MEMORY_COLUMNS,
    MemoryRows,
    action_of,
    address_of,
)
from profharness.readers.rocprofv3.tables import RocmTables
from profharness.trace.columns.build import per_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Problem, Strings

_SAID = {
    "sample": "samples of the program counter (hotspots --by line lists them)",
}
_NUMBER = re.compile(r"(\d+)\s*$")
_AGENT = re.compile(r"\s*(?:[A-Za-z]+\s+)?(\d+)\s*\Z", re.ASCII)
_PER_PROCESS = 1 << 40


class SetReader:
    """Reads the files of one process, and makes tables of them once all were read."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.strings = Strings()
        self.problems: list[Problem] = []
        self._agents = agents
        self._parts: dict[Kind, list[dict[str, I64]]] = {}
        self._values: list[F64] = []
        self._left_out: Counter[str] = Counter()
        self._paths: list[Path] = []
        self._style = ""

    def add(self, path: Path, kind: Kind) -> None:
        """Read one file. Raises InputError when it has rows and none is usable."""
        columns = CsvColumns(
            path, COLUMNS[kind], self.strings, may_be_empty=MAY_BE_EMPTY.get(kind, ())
        )
        blocks = columns.blocks()
        problems = list(columns.problems())
        if not columns.rows and problems:
            raise InputError(
                f"{path} has no usable row: {problems[0].message}",
                "copy the file again from where rocprofv3 wrote it",
            )
        self.problems += problems
        self._paths.append(path)
        if kind in _SAID:
            self._left_out[_SAID[kind]] += columns.rows
            return
        names = list(blocks[0].integers) if blocks else []
        # each block lets go of its part as soon as the column is whole
        whole = {
            name: np.concatenate([block.integers.pop(name) for block in blocks]) for name in names
        }
        if kind == "counter":
            self._values.append(
                np.concatenate([block.figures["counter_value"] for block in blocks])
                if blocks
                else np.zeros(0)
            )
        if whole:
            self._parts.setdefault(kind, []).append(whole)

    def process(self, pid: int | None) -> Process:
        """The process, with its agents by the numbers that its files use."""
        if self._style == "GPU":
            agents = {agent.type_number: agent for agent in self._agents if agent.is_gpu}
        else:
            agents = {
                agent.node if self._style == "node" else agent.number: agent
                for agent in self._agents
            }
        return Process(pid=NULL if pid is None else pid, agents=agents)

    def tables(self, prefix: str) -> tuple[RocmTables, int | None]:
        """The tables, and the process's id where it is known. `prefix` is what the files' names
        begin with.
        """
        tables = RocmTables(self.strings)
        self._separate_processes()
        kernels, counters = self._kernels(), self._counters()
        calls = [self._call_columns(tables, part) for part in self._parts.get("call", [])]
        copies = [self._copy_columns(part) for part in self._parts.get("copy", [])]
        pid = self._pid(prefix, [*calls, counters, kernels])
        process = self.process(pid)
        self._add_dispatches(tables, process, kernels, counters)
        for part in copies:
            tables.add_copies(process, part, 0)
        for part in calls:
            tables.add_calls(process, part, 0)
        for part in self._parts.get("memory", []):
            # processes that `rocpd convert` joined have addresses of their own
            guid = part.get("guid", np.zeros(len(part["operation"]), np.int64))
            for one in np.unique(guid):
                chosen = {name: column[guid == one] for name, column in part.items()}
                self._add_memory(tables, process, chosen)
        self._report(tables)
        return tables, pid

    def _add_dispatches(
        self,
        tables: RocmTables,
        process: Process,
        kernels: dict[str, I64],
        counters: dict[str, I64],
    ) -> None:
        if kernels:
            tables.add_kernels(process, kernels, 0)
        if not counters:
            return
        # the kernel trace of ROCm 6.2 has no dispatch numbers, but correlation ids as the counters
        # have
        shared = "correlation" if kernels and np.all(kernels["dispatch"] == NULL) else "dispatch"
        joined = join(kernels.get(shared, np.zeros(0, np.int64)), counters[shared])
        untraced = {name: column[joined.untraced] for name, column in counters.items()}
        tables.add_kernels(process, untraced, 0)
        tables.add_counters(joined.kernel, counters["counter"], np.concatenate(self._values), 0)
        if timeless := int((untraced["start"] == NULL).sum()):
            self.problems.append(
                Problem(
                    "warning",
                    str(self._paths[0]),
                    timeless,
                    "dispatches have no times, since this version of rocprofv3 writes none "
                    "beside counters: their durations are not known",
                )
            )

    def _add_memory(self, tables: RocmTables, process: Process, part: Mapping[str, I64]) -> None:
        """Allocations and releases, or what the runtime did about scratch memory."""
        strings = self.strings
        missing = np.full(len(part["operation"]), NULL, np.int64)
        scratch = per_text(strings, part["operation"], lambda text: "SCRATCH" in text.upper()) == 1
        codes = part.get("agent_id", missing)
        agent, stated = missing.copy(), codes != NULL  # a release states none
        agent[stated] = self._agent_numbers(codes[stated])
        columns = {
            "start": part["start_timestamp"],
            "end": part["end_timestamp"],
            "agent": agent,
            "bytes": part.get("allocation_size", missing),
            "address": per_text(strings, part.get("address", missing), address_of),
            "tid": part.get("thread_id", missing),
            "name": part["operation"],
        }
        action = per_text(strings, part["operation"], action_of)
        self._left_out += tables.add_memory(
            process,
            MemoryRows(
                action=action[~scratch],
                **{name: columns[name][~scratch] for name in MEMORY_COLUMNS},
            ),
            0,
        )
        events = {name: columns[name][scratch] for name in ("start", "end", "tid", "name")}
        tables.add_events(process, events, "scratch", 0)

    def _separate_processes(self) -> None:
        """`rocpd convert` joins processes in one file, told apart by the first column: correlation
        and dispatch ids become unique.
        """
        parts = [part for parts in self._parts.values() for part in parts if "guid" in part]
        order = (
            {
                code: place
                for place, code in enumerate(
                    np.unique(np.concatenate([part["guid"] for part in parts])).tolist()
                )
            }
            if parts
            else {}
        )
        if len(order) < 2:
            return
        processes = np.array(sorted(order), np.int64)
        for part in parts:
            shift = np.searchsorted(processes, part["guid"]) * _PER_PROCESS
            for name in {"correlation_id", "dispatch_id"} & set(part):
                part[name] = np.where(part[name] > 0, part[name] + shift, part[name])

    def _kernels(self) -> dict[str, I64]:
        return self._dispatch_columns(_joined(self._parts.get("kernel", [])))

    def _counters(self) -> dict[str, I64]:
        part = _joined(self._parts.get("counter", []))
        if not part:
            return {}
        columns = self._dispatch_columns(part)
        missing = np.full(len(columns["name"]), NULL, np.int64)
        total, size = part.get("grid_size", missing), part.get("workgroup_size", missing)
        even = (total > 0) & (size > 0) & (total % np.maximum(size, 1) == 0)
        return {
            **columns,
            "workgroups": np.where(even, total // np.maximum(size, 1), NULL),
            "counter": part["counter_name"],
            "pid": part.get("process_id", missing),
        }

    def _dispatch_columns(self, part: Mapping[str, I64]) -> dict[str, I64]:
        if not part:
            return {}
        missing = np.full(len(part["kernel_name"]), NULL, np.int64)

        def column(*names: str) -> I64:
            return next((part[name] for name in names if name in part), missing)

        return {
            "start": column("start_timestamp"),
            "end": column("end_timestamp"),
            "name": part["kernel_name"],
            "agent": self._agent_numbers(part["agent_id"]),
            "queue": column("queue_id"),
            "stream": column("stream_id"),
            "tid": column("thread_id"),
            "correlation": column("correlation_id"),
            "dispatch": column("dispatch_id"),
            **{
                f"{short}_{axis}": column(f"{long}_size_{axis}")
                for short, long in (("grid", "grid"), ("size", "workgroup"))
                for axis in "xyz"
            },
            "vgpr": column("vgpr_count"),
            "accum_vgpr": column("accum_vgpr_count"),
            "sgpr": column("sgpr_count"),
            "lds": column("lds_block_size", "group_segment_size"),
            "lds_dynamic": missing,
            "scratch": column("scratch_size", "private_segment_size"),
        }

    def _call_columns(self, tables: RocmTables, part: Mapping[str, I64]) -> dict[str, I64]:
        missing = np.full(len(part["function"]), NULL, np.int64)
        columns = {
            "start": part["start_timestamp"],
            "end": part["end_timestamp"],
            "name": part["function"],
            "domain": tables.domains(part["domain"]),
            "tid": part["thread_id"],
            "correlation": part.get("correlation_id", missing),
        }
        return {**columns, "pid": part["process_id"]} if "process_id" in part else columns

    def _copy_columns(self, part: Mapping[str, I64]) -> dict[str, I64]:
        missing = np.full(len(part["direction"]), NULL, np.int64)
        return {
            "start": part["start_timestamp"],
            "end": part["end_timestamp"],
            "name": part["direction"],
            "bytes": missing,
            "source_agent": self._agent_numbers(part["source_agent_id"]),
            "target_agent": self._agent_numbers(part["destination_agent_id"]),
            "stream": part.get("stream_id", missing),
            "correlation": part.get("correlation_id", missing),
        }

    def _agent_numbers(self, codes: I64) -> I64:
        """`2`, `Agent 2` or `GPU 0` as numbers; the first of them says how agents are numbered."""
        if not self._style and len(codes):
            text = self.strings[int(codes[0])]
            self._style = (
                "GPU" if text.startswith("GPU") else "node" if text.isdigit() else "logical"
            )
        numbers = per_text(self.strings, codes, _agent)
        if lost := int((numbers == NULL).sum()):
            where = str(self._paths[0]) if self._paths else ""
            said = "records name a device by no number: where they ran is not known"
            self.problems.append(Problem("warning", where, lost, said))
        return numbers

    def _pid(self, prefix: str, parts: Sequence[Mapping[str, I64]]) -> int | None:
        """The one id that rows state. Else the number that ends the files' names, if it is all of
        the name or also a thread's: the main one's.
        """
        stated = {
            pid
            for part in parts
            if "pid" in part
            for pid in np.unique(part["pid"]).tolist()
            if pid != NULL
        }
        if stated:
            return stated.pop() if len(stated) == 1 else None
        number = _NUMBER.search(prefix.rstrip("_-."))
        if number is None:
            return None
        threads = {int(tid) for part in parts if "tid" in part for tid in np.unique(part["tid"])}
        return (
            int(number[1])
            if number[1] == prefix.rstrip("_-.") or int(number[1]) in threads
            else None
        )

    def _report(self, tables: RocmTables) -> None:
        where = str(self._paths[0]) if self._paths else ""
        self.problems += tables.problems(where)
        self.problems += left_out(where, self._left_out, "records")


def _joined(parts: Sequence[Mapping[str, I64]]) -> dict[str, I64]:
    """Parts of one kind; a column that one of them lacks is not recorded there."""
    if len(parts) <= 1:
        return dict(parts[0]) if parts else {}
    names = dict.fromkeys(name for part in parts for name in part)
    rows = [len(next(iter(part.values()))) for part in parts]
    return {
        name: np.concatenate(
            [
                part.get(name, np.full(count, NULL, np.int64))
                for part, count in zip(parts, rows, strict=True)
            ]
        )
        for name in names
    }


def _agent(text: str) -> int:
    number = whole(match[1]) if (match := _AGENT.match(text)) else None
    return NULL if number is None else number
