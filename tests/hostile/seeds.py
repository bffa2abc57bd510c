"""What is changed: small real files of every format, and files that the tests write themselves of
the formats of which no small real file is there.

The recorded ones are taken where they are (`tests/conftest.py` says where); without them the seeds
are fewer, and another set of tries comes of the same numbers.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.conftest import SHARED
from tests.fakes.amd_tools.compute_files import write_workload
from tests.fakes.code_files import (
    Code,
    Sample,
    write_samples,
    write_samples_json,
    write_thread_trace,
)
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import write_csv, write_json
from tests.fakes.rocprofv3_program import program
from tests.fakes.stand_in_files import write_perfetto
from tests.hostile import messages
from tests.run_files import run_of

Kind = Literal["json", "csv", "lines", "sqlite", "protobuf", "bytes"]
Use = Literal["trace", "code", "perfetto", "scan", "tool folder", "run"]
LARGEST = 400_000
"""Bytes of a decompressed seed: a larger one costs more than it tells."""
_EVENTS = 400


@dataclass(frozen=True)
class File:
    """A file of a seed: its path inside the seed, its decompressed bytes, and what they are."""

    path: str
    data: bytes
    kind: Kind
    packed: bool = False


@dataclass(frozen=True)
class Seed:
    """One thing that a user can give: a file, or a folder of files."""

    format: str
    name: str
    files: tuple[File, ...]
    use: Use = "trace"

    @property
    def is_folder(self) -> bool:
        return self.use in ("tool folder", "run")


def kind_of(path: Path, data: bytes) -> Kind:
    """By the content, and by the name where that says nothing."""
    if data.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if path.name.endswith((".bin", ".npz", ".parquet")):
        return "bytes"
    if data.lstrip().startswith((b"{", b"[")) and path.suffix != ".jsonl":
        return "json"
    if path.name.removesuffix(".gz").endswith((".pftrace", ".proto", ".pb")):
        return "protobuf"
    return "csv" if path.name.removesuffix(".gz").endswith(".csv") else "lines"


def file_of(path: Path, name: str = "") -> File:
    """The file as it lies on the disk, unpacked."""
    data = path.read_bytes()
    packed = data.startswith(b"\x1f\x8b")
    data = gzip.decompress(data) if packed else data
    if kind_of(path, data) == "json" and len(data) > LARGEST:
        data = shortened(data)
    return File(name or path.name, data, kind_of(path, data), packed)


def shortened(data: bytes) -> bytes:
    """A Chrome trace with its first events alone; another document as it is."""
    document = json.loads(data)
    if not isinstance(document, dict) or "traceEvents" not in document:
        return data
    events = [e for e in document["traceEvents"] if isinstance(e, dict)]
    said = [e for e in events if e.get("ph") == "M"][:40]
    timed = sorted(
        (e for e in events if "ts" in e and e.get("ph") != "M"), key=lambda e: float(e["ts"])
    )
    return json.dumps({**document, "traceEvents": said + timed[:_EVENTS]}).encode()


def seeds(folder: Path) -> tuple[Seed, ...]:
    """All seeds, always in the same order; `folder` is an empty one to write in."""
    found = [*_recorded(SHARED / "fixtures"), *_written(folder)]
    return tuple(
        seed for seed in found if sum(len(file.data) for file in seed.files) <= LARGEST * 2
    )


# folder of the recorded files, pattern, format
_PLACES = (
    ("kineto", "a100_triton_example.json.gz", "kineto"),
    ("kineto", "a100_event_sync.json.gz", "kineto"),
    ("kineto", "a100_cupti_range_counters.json.gz", "kineto"),
    ("kineto", "a100_nccl_rank0of2.json.gz", "kineto"),
    ("kineto", "mi2*.json.gz", "kineto"),
    ("kineto", "mi300x_torch_compile_triton.json.gz", "kineto"),
    ("kineto", "mi300x_bert_small.json.gz", "kineto"),
    ("kineto", "mi300x_sglang_qwen*.json.gz", "kineto"),
    ("kineto", "sampled_rank0of128.json.gz", "kineto"),
    ("rocm/rocprofv3", "csv/*.csv", "rocprofv3 CSV"),
    ("rocm/rocprofv3", "docs_samples_0.5.0/*.csv", "rocprofv3 CSV"),
    ("rocm/rocprofv3", "readme_snippets/*.csv", "rocprofv3 CSV"),
    ("rocm/rocprofv3", "pftrace/*", "perfetto"),
    ("rocm/rocprofv3", "rocpd/*", "rocpd"),
    ("rocm/rpd_legacy", "*", "rpd"),
    ("rocm/rocprof_v1", "*/*.csv", "rocprof v1 CSV"),
    ("rocm/rocprof_v1", "*/*.json", "rocprof v1 JSON"),
    ("rocm/rocprof_v1", "*/*.db*", "rocprof v1 database"),
    ("rocm/rocprof_v1", "*/*.sysinfo.txt*", "rocminfo"),
    ("rocm/amd_log_level", "*.log", "AMD log"),
    ("rocm/miopen_log", "*.log", "MIOpen log"),
    ("rocm/rocprof_sys", "*.txt", "rocprof-sys text"),
    ("rocm/rocprof_compute", "*/*.csv", "rocprof-compute CSV"),
    ("rocm-new/rocprof_compute", "*/*.csv", "rocprof-compute CSV"),
    ("models", "_perf_analyzer_2.51.0/*.csv", "perf_analyzer CSV"),
    ("models", "_perf_analyzer_2.51.0/*.json", "perf_analyzer JSON"),
)  # fmt: skip
_FOLDERS = ("rocm/rocprof_compute", "rocm-new/rocprof_compute")


def _recorded(root: Path) -> Iterator[Seed]:
    for place, pattern, form in _PLACES:
        for path in sorted((root / place).glob(pattern)):
            if path.is_file():
                use: Use = "perfetto" if form == "perfetto" else "trace"
                yield Seed(form, path.name, (file_of(path),), use)
    for path in sorted(root.glob("studies/*.csv")):
        yield Seed("scan CSV", path.name, (file_of(path),), "scan")
    for place in _FOLDERS:
        for folder in sorted((root / place).glob("*")):
            files = tuple(file_of(path) for path in sorted(folder.glob("*")) if path.is_file())
            if (folder / "sysinfo.csv").is_file():
                yield Seed("rocprof-compute folder", folder.name, files, "tool folder")


_SCAN = "batch_size,device,throughput,latency_ms,throughput_sem\n" + "".join(
    f"{1 << level},{device},{1000 * level / (level + 2):.3f},{level + 1.5},{level / 3:.3f}\n"
    for device in ("a", "b")
    for level in range(9)
)
_ONNX = [
    {"cat": cat, "pid": 9, "tid": 9, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": args}
    for cat, name, ts, dur, args in (
        ("Session", "session_initialization", 1, 100, {}),
        ("Node", "mm_kernel_time", 210, 30, {"op_name": "MatMul", "node_index": "0",
         "provider": "CPUExecutionProvider", "input_type_shape": [{"float": [4, 8]}]}),
        ("Node", "sm_kernel_time", 245, 5, {"op_name": "Softmax", "node_index": "1",
         "provider": "ROCMExecutionProvider", "input_type_shape": [{"float": [4, 8]}]}),
        ("Session", "SequentialExecutor::Execute", 205, 60, {}),
        ("Session", "model_run", 200, 70, {}),
    )
]  # fmt: skip
_CODE = Code(
    (("v_add_f32 v1, v2", "/a.cpp:1"), ("s_waitcnt vmcnt(0)", "/a.cpp:2"), ("s_endpgm", "")),
    tuple(
        Sample(1 + n % 6, n % 3, (1 << 64) - 1 >> n % 40, "WAITCNT" if n % 2 else "")
        for n in range(60)
    ),
)
_THREADS = tuple(
    row
    for address in range(0, 80, 8)
    for row in (
        (7, address, "; gemm(float*).kd", 0, 0, 0, 0, "gemm(float*)"),
        (7, address, "v_add_f32 v1, v2", 3, 40 + address, 30, 2, "/a.cpp:1"),
    )
)


def _written(folder: Path) -> Iterator[Seed]:
    """Files of formats with few small recorded ones, or with none."""
    small, larger = program(1, 8), program(2, 40)
    for generation in ("6.2", "7.0"):
        for path in write_csv(folder / f"csv-{generation}", small, generation):
            yield Seed("rocprofv3 CSV", f"{generation} {path.name}", (file_of(path),))
    for name, given in (("small", small), ("larger", larger)):
        path = write_json(folder / f"{name}_results.json", given)
        yield Seed("rocprofv3 JSON", path.name, (file_of(path),))
        for schema in ("3", "3.0.3", "4.1.0"):
            path = write_rocpd(folder / f"{name}-{schema}.db", given, schema=schema)
            yield Seed("rocpd", path.name, (file_of(path),))
    for write in (_samples, _samples_json, _thread_trace):
        path = write(folder)
        yield Seed("samples of code", path.name, (file_of(path),), "code")
    kernels = [{"call": 10**12 + n * 900, "start": 10**12 + n * 1000, "end": 10**12 + n * 1000 + 600,
                "name": f"k{n % 3}"} for n in range(12)]  # fmt: skip
    write_perfetto(folder / "sys.pftrace", kernels, 77)
    yield Seed("perfetto", "sys.pftrace", (file_of(folder / "sys.pftrace"),), "perfetto")
    yield Seed("XSpace", "host.xplane.pb", (File("host.xplane.pb", _xspace(), "protobuf"),))
    yield Seed("scan CSV", "scan.csv", (File("scan.csv", _SCAN.encode(), "csv"),), "scan")
    yield Seed("onnxruntime", "ort.json", (File("ort.json", json.dumps(_ONNX).encode(), "json"),))
    write_workload(folder / "workload", (3, 3, 0), (_execution(0), _execution(1)))
    yield Seed("rocprof-compute folder", "workload", _all_of(folder / "workload"), "tool folder")
    yield from _own(folder)


def _own(folder: Path) -> Iterator[Seed]:
    """Our own run directories, telemetry and merged traces."""
    from profharness.readers import read
    from profharness.writers.perfetto import write

    for name, lend in (("run", True), ("torch-run", False)):
        run_of(folder / name, ranks=2, kernels=6, lend=lend)
        yield Seed("run folder", name, _all_of(folder / name), "run")
    for path in sorted((folder / "run").rglob("*")):
        if path.is_file() and "telemetry" in str(path.relative_to(folder)):
            yield Seed("own telemetry", path.name, (file_of(path),))
    write(read(folder / "small_results.json"), folder / "merged.pftrace")
    yield Seed("perfetto", "merged.pftrace", (file_of(folder / "merged.pftrace"),), "perfetto")


def _all_of(folder: Path) -> tuple[File, ...]:
    return tuple(
        file_of(path, str(path.relative_to(folder)))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )


def _execution(number: int) -> list[dict[str, object]]:
    kernels = [
        {"name": f"k{n % 2}(int)", "call": 10**9 + n * 900, "start": 10**9 + n * 1000 + number,
         "end": 10**9 + n * 1000 + 700, "workgroups": 10 + n, "size": 64}
        for n in range(6)
    ]  # fmt: skip
    return [{"pid": 77, "kernels": kernels}]


def _samples(folder: Path) -> Path:
    return write_samples(folder / "7_pc_sampling_stochastic.csv", _CODE)


def _samples_json(folder: Path) -> Path:
    return write_samples_json(folder / "pc_results.json", program(1, 6), _CODE, "stochastic")


def _thread_trace(folder: Path) -> Path:
    return write_thread_trace(folder / "stats_ui_output_agent_2_dispatch_1.csv", _THREADS)


def _xspace() -> bytes:
    """A plane of a host and one of a device, as xplane.proto has them."""
    planes = [
        b"\x08\x01" + _field(2, name) + _field(3, b"\x10\x01" * 40)
        for name in (b"/host:CPU", b"/device:GPU:0")
    ]
    return b"".join(_field(1, plane) for plane in planes) + _field(4, b"node1")


def _field(number: int, value: bytes) -> bytes:
    return messages.Field(number, 2, value).encoded()
