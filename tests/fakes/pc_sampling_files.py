"""Writes what rocprofv3 leaves of PC sampling and of the thread trace, in the form of AMD's
documentation: tables of samples by dispatch and instruction, and of each instruction's cycles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.rocprofv3_files import write_table
from tests.fakes.rocprofv3_program import Kernel, Program

HOST_TRAP = (
    *("Sample_Timestamp", "Exec_Mask", "Dispatch_Id", "Instruction", "Instruction_Comment"),
    "Correlation_Id",
)
STOCHASTIC = (
    *HOST_TRAP,
    *("Wave_Issued_Instruction", "Instruction_Type", "Stall_Reason", "Wave_Count"),
)
THREADS = ("Codeobj", "Vaddr", "Instruction", "Hitcount", "Latency", "Stall", "Idle", "Source")
_CYCLES_PER_US = 2100


@dataclass(frozen=True)
class Instruction:
    """One instruction of every kernel, at a line of its source; without one it was built
    without -g.
    """

    text: str
    kind: str
    stall: str
    source: str = ""


CODE = (
    Instruction("global_load_dwordx4 v[2:5], v[0:1], off", "VMEM", "WAITCNT", "/src/gemm.hip:12"),
    Instruction("s_waitcnt vmcnt(0)", "OTHER", "WAITCNT", "/src/gemm.hip:13"),
    Instruction(
        "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15]", "MATRIX", "ALU_DEPENDENCY"
    ),
    Instruction("s_endpgm", "NO_INST", "NO_INSTRUCTION_AVAILABLE", "/src/gemm.hip:20"),
)


def write_samples(path: Path, program: Program, method: str, interval: int) -> Path:
    """One row per sample; `interval` is in microseconds (host_trap) or cycles (stochastic). Kernels
    that are shorter than it have none, and without any sample there is no file, as the tool has it.
    """
    every_ns = interval * 1000 if method == "host_trap" else interval * 1000 // _CYCLES_PER_US
    rows = [
        _row(kernel, at, number, method)
        for kernel in program.kernels
        for number, at in enumerate(_times(kernel, max(every_ns, 1)))
    ]
    head = HOST_TRAP if method == "host_trap" else STOCHASTIC
    return write_table(path, [head, *rows]) if rows else path


def _times(kernel: Kernel, every_ns: int) -> Iterator[int]:
    return iter(range(kernel.start + every_ns, kernel.end + 1, every_ns))


def _row(kernel: Kernel, at: int, number: int, method: str) -> list[object]:
    step = CODE[number % len(CODE)]
    mask = (1 << 64) - 1 if number % 3 else (1 << 32) - 1
    row: list[object] = [at, mask, kernel.dispatch, step.text, step.source, kernel.correlation]
    if method == "host_trap":
        return row
    issued = number % 4 == 0
    reason = f"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_{step.stall}"
    kind = f"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_{step.kind}"
    return [*row, int(issued), kind, "" if issued else reason, 4]


def write_threads(folder: Path, program: Program, prefix: str) -> list[Path]:
    """For each dispatch a table of instructions and the folder of the viewer; once the raw trace
    and the code object. A table begins with a row that names its kernel. Cycles of a row are its hits times a fixed latency, so that sums are known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{prefix}shader_engine_0_1.att").write_bytes(b"\0" * 64)
    (folder / f"{prefix}code_object_id_1.out").write_bytes(b"\x7fELF")
    names = {symbol.number: symbol.name for symbol in program.symbols}
    handles = {agent.number: agent.handle for agent in program.agents}
    tables = []
    for kernel in program.kernels:
        name = f"ui_output_agent_{handles[kernel.agent]}_dispatch_{kernel.dispatch}"
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "code.json").write_text(json.dumps({"code": [], "version": "3.0.0"}))
        hits = kernel.grid[0] // kernel.size[0]
        kernel_name = names[kernel.symbol]
        rows: list[list[object]] = [[1, 0xFF8, f"; {kernel_name}", 0, 0, 0, 0, kernel_name]]
        rows += [
            [1, 0x1000 + 8 * number, step.text, hits, hits * 40, hits * 30, hits * 2, step.source]
            for number, step in enumerate(CODE)
        ]
        tables.append(write_table(folder / f"stats_{name}.csv", [THREADS, *rows]))
    return tables
