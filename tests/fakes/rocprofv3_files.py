"""Writes rocprofv3's CSV files (each generation of headers) and its JSON of a made-up program."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tests.fakes.memory_files import memory_records, memory_tables
from tests.fakes.rocprofv3_program import Call, GpuAgent, Kernel, Program, Symbol

Generation = Literal["6.2", "6.3", "6.4", "7.0", "convert"]
GENERATIONS: tuple[Generation, ...] = ("6.2", "6.3", "6.4", "7.0", "convert")
_AXES = ("X", "Y", "Z")
_AGENT = (
    "Node_Id",
    "Logical_Node_Id",
    "Agent_Type",
    "Cpu_Cores_Count",
    "Simd_Count",
    "Num_Xcc",
    "Cu_Count",
    "Device_Id",
    "Location_Id",
    "Domain",
    "Max_Engine_Clk_Fcompute",
    "Name",
    "Vendor_Name",
    "Product_Name",
    "Model_Name",
)


def write_csv(
    folder: Path,
    program: Program,
    generation: Generation = "7.0",
    prefix: str = "",
    *,
    suffix: str = ".csv",
) -> list[Path]:
    """All files of a process. `prefix` defaults to its id, as the tool's does."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = _CsvWriter(program, generation)
    tables = {
        "kernel_trace": writer.kernels(),
        "memory_copy_trace": writer.copies(),
        "counter_collection": writer.counters(),
        "agent_info": writer.agents(),
        **writer.memory(),
    }
    for kind in ("hip", "hsa", "marker", "rccl"):
        tables["rccl_api_trace" if kind == "rccl" else f"{kind}_api_trace"] = writer.calls(
            kind.upper()
        )
    start = prefix or f"{program.pid}_"
    return [
        write_table(folder / f"{start}{name}{suffix}", rows)
        for name, rows in tables.items()
        if len(rows) > 1
    ]


def write_table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    """Texts quoted, numbers bare, as the tool does; a name that ends in .gz is compressed."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


class _CsvWriter:
    def __init__(self, program: Program, generation: Generation) -> None:
        self.program = program
        self.generation = generation
        self.late = generation in ("7.0", "convert")
        self.symbols = {symbol.number: symbol for symbol in program.symbols}

    def memory(self) -> dict[str, list[list[object]]]:
        return {} if self.generation == "convert" else memory_tables(self.program, self._agent)

    def kernels(self) -> list[list[object]]:
        head: list[str] = ["Kind", "Agent_Id", "Queue_Id"]
        head += ["Stream_Id"] if self.late else []
        head += ["Thread_Id", "Dispatch_Id"] if self.generation != "6.2" else []
        head += ["Kernel_Id", "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp"]
        head += (
            ["LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count"]
            if self.late
            else ["Private_Segment_Size", "Group_Segment_Size"]
        )
        head += [f"Workgroup_Size_{axis}" for axis in _AXES] + [
            f"Grid_Size_{axis}" for axis in _AXES
        ]
        return self._table(head, [self._kernel(kernel) for kernel in self.program.kernels])

    def _kernel(self, k: Kernel) -> dict[str, object]:
        symbol = self.symbols[k.symbol]
        return {
            "Kind": "KERNEL_DISPATCH",
            "Agent_Id": self._agent(k.agent),
            "Queue_Id": k.queue,
            "Stream_Id": k.stream,
            "Thread_Id": k.tid,
            "Dispatch_Id": k.dispatch,
            "Kernel_Id": k.symbol,
            "Kernel_Name": symbol.name,
            "Correlation_Id": k.correlation,
            "Start_Timestamp": k.start,
            "End_Timestamp": k.end,
            "Private_Segment_Size": k.scratch,
            "Group_Segment_Size": k.lds,
            "Scratch_Size": k.scratch,
            **self._registers(symbol),
            **{f"Workgroup_Size_{a}": v for a, v in zip(_AXES, k.size, strict=True)},
            **{f"Grid_Size_{a}": v for a, v in zip(_AXES, k.grid, strict=True)},
        }

    @staticmethod
    def _registers(symbol: Symbol) -> dict[str, object]:
        return {
            "LDS_Block_Size": symbol.static_lds,
            "VGPR_Count": symbol.vgpr,
            "Accum_VGPR_Count": symbol.accum_vgpr,
            "SGPR_Count": symbol.sgpr,
        }

    def copies(self) -> list[list[object]]:
        head = [
            "Kind",
            "Direction",
            *(["Stream_Id"] if self.late else []),
            "Source_Agent_Id",
            "Destination_Agent_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ]
        plain = self.generation == "6.2"
        return self._table(
            head,
            [
                {
                    "Kind": "MEMORY_COPY",
                    "Direction": c.direction if plain else f"MEMORY_COPY_{c.direction}",
                    "Stream_Id": c.stream,
                    "Source_Agent_Id": self._agent(c.source),
                    "Destination_Agent_Id": self._agent(c.target),
                    "Correlation_Id": c.correlation,
                    "Start_Timestamp": c.start,
                    "End_Timestamp": c.end,
                }
                for c in self.program.copies
            ],
        )

    def calls(self, kind: str) -> list[list[object]]:
        head = [
            "Domain",
            "Function",
            "Process_Id",
            "Thread_Id",
            "Correlation_Id",
            "Start_Timestamp",
            "End_Timestamp",
        ]
        return self._table(
            head,
            [
                {
                    "Domain": self._domain(c),
                    "Function": c.message or c.name,
                    "Process_Id": self.program.pid,
                    "Thread_Id": c.tid,
                    "Correlation_Id": c.correlation,
                    "Start_Timestamp": c.start,
                    "End_Timestamp": c.end,
                }
                for c in self.program.calls
                if c.domain.startswith(kind)
            ],
        )

    def _domain(self, call: Call) -> str:
        if self.late:
            return f"{call.domain}_EXT" if call.domain.startswith("HIP") else call.domain
        return call.domain.replace("_RANGE", "")

    def counters(self) -> list[list[object]]:
        head = [
            "Correlation_Id",
            "Dispatch_Id",
            "Agent_Id",
            "Queue_Id",
            "Process_Id",
            "Thread_Id",
            "Grid_Size",
            "Kernel_Id",
            "Kernel_Name",
            "Workgroup_Size",
            "LDS_Block_Size",
            "Scratch_Size",
            "VGPR_Count",
            *(["Accum_VGPR_Count"] if self.generation not in ("6.2", "6.3") else []),
            "SGPR_Count",
            "Counter_Name",
            "Counter_Value",
            *(["Start_Timestamp", "End_Timestamp"] if self.generation != "6.2" else []),
        ]
        return self._table(
            head,
            [
                {
                    **self._kernel(k),
                    "Process_Id": self.program.pid,
                    "Grid_Size": k.grid[0] * k.grid[1] * k.grid[2],
                    "Workgroup_Size": k.size[0] * k.size[1] * k.size[2],
                    "Counter_Name": name,
                    "Counter_Value": sum(parts),
                }
                for k in self.program.kernels
                for name, parts in k.counters
            ],
        )

    def agents(self) -> list[list[object]]:
        cpus: list[list[object]] = [
            [n, n, "CPU", 128, 0, 1, 128, 0, 0, 0, 3300, f"CPU {n}", "CPU", f"CPU {n}", ""]
            for n in range(self.program.cpus)
        ]
        gpus: list[list[object]] = [
            [
                a.number,
                a.number,
                "GPU",
                0,
                1216,
                a.dies,
                a.compute_units,
                29857,
                a.location,
                a.domain,
                a.clock_mhz,
                a.name,
                "AMD",
                a.product,
                "ip discovery",
            ]
            for a in self.program.agents
        ]
        return [list(_AGENT), *cpus, *gpus]

    def _agent(self, number: int) -> object:
        return f"Agent {number}" if self.late else number

    def _table(self, head: list[str], rows: list[dict[str, object]]) -> list[list[object]]:
        """In `rocpd convert`'s form a GUID stands in front and names have capitals at the start of
        words only.
        """
        convert = self.generation == "convert"
        body = [
            [
                *(["00003fdc-92cb-72cb-9169-c7e541b1fcdf"] if convert else []),
                *(row[name] for name in head),
            ]
            for row in rows
        ]
        names = (
            [
                "Guid",
                *(
                    name.replace("LDS", "Lds").replace("VGPR", "Vgpr").replace("SGPR", "Sgpr")
                    for name in head
                ),
            ]
            if convert
            else head
        )
        return [list(names), *body]


def agent_record(agent: GpuAgent, index: int) -> dict[str, Any]:
    """A GPU as the JSON describes it."""
    return {
        "size": 312,
        "id": {"handle": agent.handle},
        "type": 2,
        "simd_count": 1216,
        "num_xcc": agent.dies,
        "cu_count": agent.compute_units,
        "location_id": agent.location,
        "domain": agent.domain,
        "max_engine_clk_fcompute": agent.clock_mhz,
        "hive_id": 2**64 - 5,
        "name": agent.name,
        "vendor_name": "AMD",
        "product_name": agent.product,
        "node_id": agent.number,
        "logical_node_id": agent.number,
        "logical_node_type_id": index,
        "gpu_index": index,
    }


def document(*programs: Program) -> dict[str, Any]:
    """The JSON document."""
    return {"rocprofiler-sdk-tool": [_process(program) for program in programs]}


def write_json(path: Path, *programs: Program, indent: int | None = None) -> Path:
    """The document as a file; a name that ends in .gz is compressed."""
    text = json.dumps(
        document(*programs), indent=indent, separators=None if indent else (",", ":")
    ).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def _process(program: Program) -> dict[str, Any]:
    names = _Names()
    counters = {
        name: number
        for number, name in enumerate(
            sorted({name for k in program.kernels for name, _ in k.counters}), 1000
        )
    }
    handles = {agent.number: agent.handle for agent in program.agents} | {
        number: 37944 + number for number in range(program.cpus)
    }
    records = {
        kind: [
            names.call(c) for c in program.calls if c.domain.startswith(kind.split("_")[0].upper())
        ]
        for kind in ("hip_api", "hsa_api", "marker_api", "rccl_api")
    }
    copies = [
        {
            **names.timed(
                "MEMORY_COPY", f"MEMORY_COPY_{c.direction}", c.start, c.end, c.correlation, c.tid
            ),
            "bytes": c.bytes,
            "src_agent_id": {"handle": handles[c.source]},
            "dst_agent_id": {"handle": handles[c.target]},
            "stream_id": {"handle": c.stream},
        }
        for c in program.copies
    ]
    dispatches = [
        {
            "size": 184,
            **names.timed(
                "KERNEL_DISPATCH", "KERNEL_DISPATCH_COMPLETE", k.start, k.end, k.correlation, k.tid
            ),
            "dispatch_info": _info(k, handles),
            "stream_id": {"handle": k.stream},
        }
        for k in program.kernels
    ]
    memory = memory_records(program, handles, names.timed)
    counted = [
        {
            "thread_id": k.tid,
            "dispatch_data": {
                "size": 1,
                "correlation_id": {"internal": k.correlation, "external": 0},
                "start_timestamp": k.start,
                "end_timestamp": k.end,
                "dispatch_info": _info(k, handles),
            },
            "records": [
                {"counter_id": {"handle": counters[name]}, "value": value}
                for name, parts in k.counters
                for value in parts
            ],
            "stream_id": {"handle": k.stream},
        }
        for k in program.kernels
        if k.counters
    ]
    cpus = [
        {
            "id": {"handle": 37944 + n},
            "type": 1,
            "cu_count": 128,
            "node_id": n,
            "logical_node_id": n,
            "name": f"CPU {n}",
        }
        for n in range(program.cpus)
    ]
    return {
        "metadata": {
            "node": {"id": 0, "hostname": program.host},
            "pid": program.pid,
            "init_time": 1,
            "command": ["./app"],
            "config": {"csv_output": False},
        },
        "agents": [
            *cpus,
            *(agent_record(agent, index) for index, agent in enumerate(program.agents)),
        ],
        "counters": [
            {"id": {"handle": number}, "name": name, "is_derived": 0}
            for name, number in counters.items()
        ],
        "strings": {
            "callback_records": [],
            "buffer_records": names.tables(),
            "correlation_id": {"external": []},
            "marker_api": [
                {"key": c.correlation, "value": c.message} for c in program.calls if c.message
            ],
        },
        "code_objects": [],
        "kernel_symbols": [
            {"size": 0, "kernel_id": 0, "kernel_name": "", "formatted_kernel_name": "0"},
            *(
                {
                    "size": 88,
                    "kernel_id": s.number,
                    "kernel_name": f"{s.name}.kd",
                    "group_segment_size": s.static_lds,
                    "sgpr_count": s.sgpr,
                    "arch_vgpr_count": s.vgpr,
                    "accum_vgpr_count": s.accum_vgpr,
                    "formatted_kernel_name": s.name,
                }
                for s in program.symbols
            ),
        ],
        "host_functions": [],
        "summary": [],
        "callback_records": {"counter_collection": counted},
        "buffer_records": {
            "kernel_dispatch": dispatches,
            **records,
            "memory_copy": copies,
            **memory,
            "pc_sample_host_trap": [],
        },
    }


def _info(k: Kernel, handles: dict[int, int]) -> dict[str, Any]:
    return {
        "size": 72,
        "agent_id": {"handle": handles[k.agent]},
        "queue_id": {"handle": k.queue},
        "kernel_id": k.symbol,
        "dispatch_id": k.dispatch,
        "private_segment_size": k.scratch,
        "group_segment_size": k.lds,
        "workgroup_size": dict(zip("xyz", k.size, strict=True)),
        "grid_size": dict(zip("xyz", k.grid, strict=True)),
    }


class _Names:
    """Tables of kinds and operations, filled as they are used."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, int]] = {"NONE": {}}

    def call(self, c: Call) -> dict[str, Any]:
        return self.timed(c.domain, c.name, c.start, c.end, c.correlation, c.tid)

    def timed(
        self, kind: str, operation: str, start: int, end: int, correlation: int, tid: int
    ) -> dict[str, Any]:
        operations = self.kinds.setdefault(kind, {})
        return {
            "kind": list(self.kinds).index(kind),
            "operation": operations.setdefault(operation, len(operations)),
            "thread_id": tid,
            "correlation_id": {"internal": correlation, "external": 0},
            "start_timestamp": start,
            "end_timestamp": end,
        }

    def tables(self) -> list[dict[str, Any]]:
        return [
            {"kind": kind, "operations": list(operations)}
            for kind, operations in self.kinds.items()
        ]
