"""What only rocprofv3 records, and which ranks it stands around, through real processes."""

from __future__ import annotations

import csv
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from tests.fakes import stand_in_srun
from tests.fakes.amd_tools.rocprofv3 import DECODER
from tests.fakes.pc_sampling_files import CODE, STOCHASTIC, THREADS
from tests.fakes.stand_in_node import PROGRAM, Node

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds

KERNELS, NS = 5, 20_000


def left(manifest: Manifest, file_format: str) -> list[str]:
    return [one.path for one in manifest.artifacts if one.format == file_format]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A run with both, each in a pass of its own, on a node that has the decoder."""
    node = Node(tmp_path_factory.mktemp("sampled"), "7.2")
    (node.bin.parent / "lib").mkdir()
    (node.bin.parent / "lib" / DECODER).touch()
    done = node.run(
        *("--profile", "rocprofv3", "--pc-sampling", "stochastic:2048", "--att", "--yes"), "--quiet"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("program:") == 3
    return node


def test_program_counters_and_threads_have_passes_of_their_own(sampled: Node) -> None:
    found = [(one.name, one.purpose, one.perturbing) for one in sampled.manifest.passes]
    assert found == [
        ("rocprofv3", "", False),
        ("rocprofv3-pc-sampling", "pc-sampling", True),
        ("rocprofv3-thread-trace", "thread-trace", True),
    ]
    assert sampled.findings == ["serialising-counters"] * 2
    assert "nothing-by-line" not in sampled.findings
    # the trace speaks for the kernels
    assert sampled.kernels() == ("rocprofv3", KERNELS, KERNELS * NS)


def test_every_sample_is_kept_with_its_pass_and_process(sampled: Node) -> None:
    (path,) = left(sampled.manifest, "rocprofv3-pc-sampling")
    (artifact,) = (one for one in sampled.manifest.artifacts if one.path == path)
    assert (artifact.pass_name, artifact.aside) == ("rocprofv3-pc-sampling", True)
    assert artifact.pid is not None
    table = rows(sampled.run_dir / path)
    assert tuple(table[0]) == STOCHASTIC
    # 2048 cycles at 2.1 GHz are 975 ns: 20 samples of each kernel
    assert len(table) == KERNELS * (NS // (2048 * 1000 // 2100))
    assert {row["Instruction"] for row in table} == {step.text for step in CODE}


def test_what_the_thread_trace_leaves_is_found_in_the_folder_of_its_process(sampled: Node) -> None:
    paths = left(sampled.manifest, "rocprofv3-thread-trace")
    assert len(paths) == KERNELS
    host = sampled.manifest.nodes[0].host
    for path in paths:
        (artifact,) = (one for one in sampled.manifest.artifacts if one.path == path)
        folder = Path(path).parent.name
        assert folder == f"rocprofv3-thread-trace_{artifact.pid}"
        assert (artifact.host, artifact.pass_name) == (host, "rocprofv3-thread-trace")
    assert all(tuple(rows(sampled.run_dir / path)[0]) == THREADS for path in paths)
    # the viewer's folders stay where they are, and are no files of ours
    assert not [
        one.path for one in sampled.manifest.artifacts if "ui_output" in Path(one.path).parts[-2]
    ]


def test_kernels_that_are_shorter_than_the_interval_are_no_silent_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.4")
    done = node.run("--profile", "rocprofv3", "--pc-sampling", "host_trap:1000", "--yes", "--quiet")
    assert done.returncode == 0, done.stderr
    assert node.findings == ["nothing-by-line", "serialising-counters"]
    assert "took no sample of a program counter" in node.manifest.findings[0].message


def test_a_thread_trace_without_its_decoder_never_starts_the_workload(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.profharness(
        *("wrap", "rocprofv3", "--thread-trace", "-o", "w", "--", sys.executable, str(PROGRAM))
    )
    assert done.returncode == 3, done.stderr
    assert "program:" not in done.stdout
    assert "rocprofv3 did not start the workload: Fatal error: rocprof-trace-decoder" in done.stderr
    assert "ROCPROF_ATT_LIBRARY_PATH" in done.stderr


def test_groups_of_counters_are_one_execution_where_kernels_are_replayed(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.1")
    names = (
        "TCC_HIT_sum",
        "TCC_MISS_sum",
        "TCC_REQ_sum",
        "TCC_READ_sum",
        "TCC_WRITE_sum",
        "SQ_WAVES",
    )
    asked = ("--profile", "rocprofv3", "--pmc", ",".join(names), "--replay-mode", "kernel")
    planned = node.run(*asked, "--dry-run")
    assert "executions      2\n" in planned.stdout
    assert "replays every kernel 2 times" in planned.stdout
    done = node.run(*asked, "--passes", "2", "--quiet", STAND_IN_COUNTERS_AT_ONCE="3")
    assert done.returncode == 0, done.stderr
    # four counters at once were one too many: the same execution again with groups of half the size
    whole, again = node.manifest.passes[1:]
    assert (whole.name, whole.split, again.name) == (
        "rocprofv3-pmc1",
        ("rocprofv3-pmc1a",),
        "rocprofv3-pmc1a",
    )
    assert max(map(len, again.groups)) <= 3 < max(map(len, whole.groups))
    trace = node.trace
    counted = trace.strings.decode(trace.counters.name)
    assert {name: list(counted).count(name) for name in names} == dict.fromkeys(names, KERNELS)


@pytest.mark.parametrize("launcher", ["ranks", "srun"])
def test_only_the_ranks_that_were_named_start_under_the_tool(tmp_path: Path, launcher: str) -> None:
    node = Node(tmp_path, "7.0")
    flags = ("--profile", "rocprofv3", "--trace-ranks", "1-2", "--quiet", "--ranks", "3")
    if launcher == "srun":
        srun = stand_in_srun.install(tmp_path / "slurm")
        path = f"{srun}:{node.bin}:/usr/bin:/bin"
        started = ("--launcher", "slurm")
        # inside of a job: outside of one the script would be handed to this machine's sbatch
        done = node.run(*flags, *started, program=("--exit", "6"), PATH=path, SLURM_JOB_ID="77")
    else:
        done = node.run(*flags, program=("--exit", "6"))
    assert done.returncode == 6, done.stderr
    manifest = node.manifest
    assert (manifest.ranks, manifest.traced_ranks, manifest.state) == (3, (1, 2), "done")
    assert sorted(one.rank for one in manifest.artifacts if one.rank is not None) == [1, 2]
    assert sorted((one.rank, one.exit_status) for one in manifest.rank_outcomes) == [
        (rank, 6) for rank in range(3)
    ]
    assert node.findings == []
    (record,) = manifest.passes
    assert record.layers == ("rocprofv3",)
    # rank 0 keeps the manifest and ran without the tool
    assert not any("rocprofv3" in word for word in record.argv[0])
    assert node.kernels() == ("rocprofv3", 2 * KERNELS, 2 * KERNELS * NS)
    assert RunDir.open(node.run_dir).read_manifest() == manifest
    told = node.profharness("report", str(node.run_dir))
    assert "profharness: of 3 ranks only 1, 2 traced, " in told.stdout
    assert "traced ranks" in (node.run_dir / "report.html").read_text()


def test_a_tool_that_is_newer_than_the_newest_known_says_so_in_plan_and_run(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.2")
    program = node.bin / "rocprofv3"
    program.write_text(program.read_text().replace("rocm_version: 10.2.0", "rocm_version: 11.2.0"))
    said = (
        "rocprofv3 1.4.1 is newer than the newest known, that of ROCm 10.2: it is used as that one"
    )
    planned = node.run("--profile", "rocprofv3", "--dry-run")
    assert f"  note    {said}\n" in planned.stdout
    done = node.run("--profile", "rocprofv3", "--memory-allocation-trace", "--kfd-trace")
    assert (done.returncode, node.findings) == (0, []), done.stderr
    assert f"profharness: {said}\n" in done.stderr
    assert node.kernels() == ("rocprofv3", KERNELS, KERNELS * NS)
    (path,) = left(node.manifest, "rocpd")
    with closing(sqlite3.connect(node.run_dir / path)) as database:
        found = database.execute('SELECT level, size FROM "rocpd_memory_allocate"').fetchall()
    assert found == [("REAL", 1 << 21)]  # scratch memory was not asked for
