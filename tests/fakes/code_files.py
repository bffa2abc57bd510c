"""Writes what rocprofv3 leaves of samples of the program counter and of thread traces, for a list
of samples that a test chose.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.rocprofv3_files import write_json
from tests.fakes.rocprofv3_program import Program

REASON = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
TYPE = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
HOST_TRAP = (
    "Sample_Timestamp",
    "Exec_Mask",
    "Dispatch_Id",
    "Instruction",
    "Instruction_Comment",
    "Correlation_Id",
)
STOCHASTIC = (
    *HOST_TRAP,
    "Wave_Issued_Instruction",
    "Instruction_Type",
    "Stall_Reason",
    "Wave_Count",
)
THREAD_TRACE = ("CodeObj", "Vaddr", "Instruction", "Hitcount", "Latency", "Stall", "Idle", "Source")


@dataclass(frozen=True)
class Sample:
    """One sample; `instruction` is a place in the list of instructions, -1 for code that the tool
    cannot decode. `reason` is WAITCNT and the like, empty where the wave issued.
    """

    dispatch: int
    instruction: int
    mask: int
    reason: str = ""


@dataclass(frozen=True)
class Code:
    """Instructions and their source lines, and samples of them."""

    instructions: tuple[tuple[str, str], ...]
    samples: tuple[Sample, ...]

    def at(self, sample: Sample) -> tuple[str, str]:
        """Instruction and comment as the tool writes them."""
        if sample.instruction < 0:
            return "", "Unrecognized code object id, physical virtual address of PC:4096"
        return self.instructions[sample.instruction]


def write_samples(
    path: Path, code: Code, columns: Sequence[str] = STOCHASTIC, *, quoted: bool = True
) -> Path:
    """The CSV file, with these columns in this order."""
    rows = []
    for number, sample in enumerate(code.samples):
        instruction, comment = code.at(sample)
        rows.append(
            {
                "sample_timestamp": 63_857_982_592_000 + number,
                "exec_mask": sample.mask,
                "dispatch_id": sample.dispatch,
                "instruction": instruction,
                "instruction_comment": comment,
                "correlation_id": 3 * sample.dispatch - 2,
                "wave_issued_instruction": int(not sample.reason),
                "instruction_type": f"{TYPE}VALU",
                "stall_reason": f"{REASON}{sample.reason or 'NONE'}",
                "wave_count": 4,
            }
        )
    return _write(path, columns, ([row[name.lower()] for name in columns] for row in rows), quoted)


def write_samples_json(path: Path, given: Program, code: Code, method: str) -> Path:
    """The JSON file of a program with samples in it."""
    write_json(path, given)
    content = json.loads(path.read_text())
    process = content["rocprofiler-sdk-tool"][0]
    process["strings"]["pc_sample_instructions"] = [text for text, _ in code.instructions]
    process["strings"]["pc_sample_comments"] = [line for _, line in code.instructions]
    process["buffer_records"][f"pc_sample_{method}"] = [
        {
            "record": {
                "dispatch_id": sample.dispatch,
                "exec_mask": sample.mask,
                "correlation_id": {"internal": 3 * sample.dispatch - 2, "external": 0},
                "pc": {"code_object_id": 4, "code_object_offset": 5888},
                **(
                    {
                        "wave_issued": int(not sample.reason),
                        "inst_type": f"{TYPE}VALU",
                        "snapshot": {"stall_reason": f"{REASON}{sample.reason or 'NONE'}"},
                    }
                    if method == "stochastic"
                    else {}
                ),
            },
            "inst_index": sample.instruction,
        }
        for sample in code.samples
    ]
    path.write_text(json.dumps(content))
    return path


def write_thread_trace(path: Path, rows: Iterable[Sequence[object]]) -> Path:
    """The table of one dispatch."""
    return _write(path, THREAD_TRACE, rows, quoted=True)


def _write(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]], quoted: bool
) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(
            file,
            quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL,
            lineterminator="\n",
        )
        writer.writerow(columns)
        writer.writerows(rows)
    return path
