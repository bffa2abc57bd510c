"""Whatever is merged is found whole by a real trace processor: the same slices and arrows, and what
a reader looks for by name: processes, categories, queues, counters with units, arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from perfetto.trace_processor import TraceProcessor

from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from profharness.understand.load import load
from profharness.understand.merge.command import MergeOptions, merge_to_file
from tests.conftest import shared_path
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import write_csv, write_json
from tests.fakes.rocprofv3_program import program
from tests.readers.perfetto.test_reader import rocprof_sys
from tests.run_files import run_of
from tests.samples.keep import unpacked
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.rich.kineto_file import write_kineto
from tests.writers.test_perfetto import wanted
from tests.writers.test_trace_processor import NOT_GPU, found, host_spans

pytestmark = pytest.mark.slow
GEOMETRY = frozenset(
    {"launch.grid_size.x", "launch.workgroup_size.x", "fill_percent", "registers_per_thread"}
)
WORK = frozenset({"flops", "bytes_at_least", "share_of_peak_percent", "limiter", "operator"})
TRAINER = "pyper:trainer:0"
KINETO = ("op", "module", "python_function", "step")


@dataclass(frozen=True)
class Kind:
    """What is merged, and what must be found in it; the names of queues are of those above the
    first record.
    """

    make: Callable[[Path], Path | list[Path]]
    processes: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    counters: tuple[tuple[str, str], ...] = ()
    arguments: frozenset[str] = frozenset()


def recorded(*names: str) -> Callable[[Path], Path | list[Path]]:
    """Files that real tools wrote, where they are."""

    def make(_: Path) -> list[Path]:
        paths = [shared_path(f"fixtures/{name}") for name in names]
        if not all(path.exists() for path in paths):
            pytest.skip("needs the recorded traces")
        return paths

    return make


def kept(name: str) -> Callable[[Path], Path]:
    return lambda folder: unpacked(name, folder)


def rocprof_v2(folder: Path) -> Path:
    """`results_<pid>.csv` of rocprofv2, with two queues."""
    head = "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID"
    rows = [
        f'{n},1,{1 + n % 2},77,78,25600,256,0,0,16,0,32,64,"gemm<float>",{1000 * n},{1000 * n + 700},{n}'
        for n in range(6)
    ]
    path = folder / "results_77.csv"
    path.write_text("\n".join((head, *rows)) + "\n")
    return path


KINDS = {
    "Kineto, made here": Kind(
        lambda folder: write_kineto(folder / "t.json"),
        ("python3",),
        ("cuda", "op", "module", "python_function", "range"),
        ("stream 7",),
    ),
    "Kineto, CUDA": Kind(
        recorded("kineto/h100_bert_small.json.gz"),
        ("python3",),
        ("cuda", "cuda_driver", *KINETO),
        ("stream 7",),
        (("torch allocated", "bytes"), ("torch reserved", "bytes")),
        GEOMETRY | WORK | {"shared_mem_static", "debug.shapes", "debug.types"},
    ),
    "Kineto, ROCm": Kind(
        recorded("kineto/mi300x_bert_small.json.gz"),
        ("python3",),
        ("hip", *KINETO),
        ("stream 0",),
        (("torch allocated", "bytes"), ("torch reserved", "bytes")),
        (GEOMETRY | WORK | {"shared_mem_dynamic"}) - {"registers_per_thread"},
    ),
    "Kineto of two ranks": Kind(
        recorded(
            "kineto/sampled_rank0of128.json.gz",
            "kineto/sampled_rank1of128.json.gz",
        ),
        tuple(f"sampled_rank{n}of128.json.gz · rank {n} · {TRAINER}:{n}" for n in (0, 1)),
    ),
    "rocprofv3, CSV": Kind(
        lambda folder: list(write_csv(folder, program(), "7.0")),
        categories=("hip",),
        arguments=GEOMETRY,
    ),
    "rocprofv3, JSON": Kind(
        lambda folder: write_json(folder / "4711_results.json", program()),
        categories=("hip",),
        arguments=GEOMETRY | {"bytes"},
    ),
    "rocprofv3, rocpd": Kind(
        lambda folder: write_rocpd(folder / "4711_results.db", program()),
        categories=("hip",),
        arguments=GEOMETRY | {"bytes"},
    ),
    "rocprofv3, rocpd, recorded": Kind(
        recorded("rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz"),
        ("tile_example_batched_gemm",),
        ("hip",),
        ("queue 16 (stream 0)",),
        arguments=GEOMETRY,
    ),
    "rocprofv3, pftrace": Kind(
        recorded("rocm/rocprofv3/pftrace/mi300a_3648722_results.pftrace"),
        ("julia",),
        ("hip", "hsa"),
        ("queue 0 (stream 1)",),
        arguments=frozenset({"registers_per_thread", "kernel_name"}),
    ),
    "rocprof": Kind(
        recorded("rocm/rocprof_v1/kokkos_2021/results.json"),
        ("process 216796",),
        ("hip", "range"),
        ("stream 0", "stream 1"),
    ),
    "rocprof, table": Kind(
        recorded("rocm/rocprof_v1/fd_laplacian_2023/results.csv"),
        ("process 2046349",),
        queues=("stream 0",),
        arguments=frozenset({"fill_percent", "registers_per_thread"}),
    ),
    "rocprofv2": Kind(
        rocprof_v2, ("process 77",), queues=("stream 1", "stream 2"), arguments=frozenset()
    ),
    "rocprof-sys": Kind(
        lambda folder: rocprof_sys().write(folder / "perfetto-trace.proto"),
        ("process 500",),
        ("hip", "step"),
        ("queue 7 (stream 0)", "stream 5"),
        (("power", "W"),),
    ),
    "log of the HIP runtime": Kind(
        recorded("rocm/amd_log_level/rocm7_level5_pytorch_window1.log"),
        ("process 309675",),
        ("hip", "range"),
    ),
    "scan": Kind(
        kept("0.1-scan-torch"),
        ("torch · python", "bare"),
        ("op", "point", "trial", "warmup", "marker"),
        counters=(("throughput", "items/s"), ("cores used", "cores")),
    ),
    "served scan": Kind(kept("0.1-served"), categories=("point", "request")),
    "command": Kind(kept("0.1-command"), categories=("op", "step")),
    "ranks of a run": Kind(
        lambda folder: run_of(folder / "run").root,
        (*(f"torch · rank {n} · n{n // 2}" for n in range(4)), "bare · n0"),
        ("hip", "op", "step", "trial", "point", "rccl"),
        tuple(f"rocprofv3 · rank {n} · queue 16 (stream {s})" for n in range(4) for s in (0, 1)),
        (("throughput", "items/s"), ("cores used", "cores")),
        GEOMETRY | {"operator", "bytes"},
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_trace_processor_finds_all_of_it(
    name: str,
    tmp_path: Path,
    load_trace: LoadTrace,  # noqa: F811  the fixture that is imported
) -> None:
    kind = KINDS[name]
    made = kind.make(tmp_path)
    paths = made if isinstance(made, list) else [made]
    options = MergeOptions(allow_unaligned=True)
    client = load_trace(merge_to_file(paths, tmp_path / "merged.pftrace", options).path)
    trace = load(paths, allow_unaligned=True, wanted=Wanted.STACKS).trace
    assert errors(client) == []
    assert_whole(client, trace)
    seen = names(client, "SELECT name FROM process WHERE name IS NOT NULL")
    assert set(kind.processes) <= seen
    assert set(kind.categories) <= names(client, "SELECT DISTINCT category AS name FROM slice")
    tracks = names(
        client,
        "SELECT DISTINCT t.name AS name FROM gpu_slice s JOIN gpu_track t ON s.track_id = t.id",
    )
    assert set(kind.queues) <= tracks
    assert kind.arguments <= names(client, "SELECT DISTINCT flat_key AS name FROM args")
    units = {(row.name, row.unit) for row in client.query("SELECT name, unit FROM counter_track")}
    assert set(kind.counters) <= units


def names(client: TraceProcessor, query: str) -> set[str]:
    return {row.name for row in client.query(query)}


def assert_whole(client: TraceProcessor, trace: Trace) -> None:
    """Every record once, with its begin, length and name; every value of every series."""
    assert found(client, "SELECT ts, dur, name FROM gpu_slice") == wanted(
        trace, trace.kernels
    ) + wanted(trace, trace.copies)
    assert found(client, NOT_GPU) == host_spans(trace)
    (row,) = client.query("SELECT count(*) AS n FROM counter")
    assert row.n >= len(trace.samples)


def test_a_scan_has_one_throughput_for_each_pass(
    tmp_path: Path,
    load_trace: LoadTrace,  # noqa: F811  the fixture that is imported
) -> None:
    run = unpacked("0.1-scan-torch", tmp_path)
    client = load_trace(merge_to_file([run], tmp_path / "merged.pftrace", MergeOptions()).path)
    rows = client.query(
        "SELECT extract_arg(t.source_arg_set_id, 'y_axis_share_key') AS metric, t.name AS name, "
        "count(*) AS n FROM counter_track t JOIN counter c ON c.track_id = t.id GROUP BY t.id"
    )
    passes = [row.n for row in rows if row.name == "throughput"]
    assert len(passes) == 2
    assert all(passes)
