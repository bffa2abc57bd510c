"""Every layer around a script and a scan, alone and together, with ranks, children, crashes, hangs
and no output: real processes under stand-ins.

Each cell asks for the right exit code, the right findings, and a run directory that can be read.
What is peculiar to one tool is in test_amd_runs.
"""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path

import pytest

from profharness.rundir.paths import RunDir
from profharness.trace.model import Trace
from profharness.understand import report_run as understand
from profharness.understand import run_files as gather
from tests.fakes.stand_in_node import OPERATORS, SITE, Node
from tests.variants import but_for, thorough

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds

RELEASES = {
    "rocprofv3": "7.0",
    "rocprof": "6.1",
    "rocprof-sys": "6.4",
    "rocprof-compute": "7.0",
    "amd-log": "7.0",
}
LAYERS = sorted(RELEASES)
TRACERS = ("rocprofv3", "rocprof", "rocprof-sys")
ONE_OF_ALL = but_for(LAYERS, "rocprofv3".__eq__)
PERTURBING = {"rocprof-compute", "amd-log"}


def node_with(folder: Path, layer: str) -> Node:
    return Node(folder, RELEASES[layer])


def launched(node: Node, layer: str) -> int:
    """Kernels of the layer's pass, or what its log has in their place."""
    trace = understand.load([node.run_dir]).trace
    own = [position for position, source in enumerate(trace.sources) if source.layer == layer]
    if layer != "amd-log":
        return sum(int((trace.kernels.source == position).sum()) for position in own)
    return sum(name.startswith("submission of") for name in trace.strings.decode(trace.marks.name))


def expected(layer: str, *found: str) -> list[str]:
    """These findings, and the one that a perturbing pass always has."""
    return [*found, *(["serialising-counters"] if layer in PERTURBING else [])]


def intact(node: Node, *passes: str) -> Trace:
    """The run directory is whole: every pass is told, every file that it names is there, and all of
    it can be read again.
    """
    manifest = node.manifest
    assert (manifest.state, [record.name for record in manifest.passes]) == ("done", list(passes))
    assert [
        artifact.path
        for artifact in manifest.artifacts
        if not (node.run_dir / artifact.path).is_file()
    ] == []
    assert len({artifact.path for artifact in manifest.artifacts}) == len(manifest.artifacts)
    for name in ("report.html", "summary.json", "merged.pftrace"):
        assert (node.run_dir / name).stat().st_size > 0, name
    trace = understand.load([node.run_dir]).trace
    assert [problem for problem in trace.problems if problem.severity == "error"] == []
    return trace


@pytest.mark.parametrize("layer", ONE_OF_ALL)
def test_a_child_process_is_recorded(tmp_path: Path, layer: str) -> None:
    node = node_with(tmp_path, layer)
    done = node.run("--profile", layer, "--quiet", program=("--child",))
    assert done.returncode == 0, done.stderr
    assert node.findings == expected(layer)
    assert launched(node, layer) == 5
    intact(node, layer)
    if layer == "amd-log":  # which has no device times, and says what it has
        log = json.loads((node.run_dir / "summary.json").read_text())["log"]
        assert (sum(row["launches"] for row in log["kernels"]), log["pass_name"]) == (5, layer)
        assert "5 launches of" in (node.run_dir / "report.html").read_text()


@pytest.mark.parametrize("layer", but_for(LAYERS, ("rocprofv3", "rocprof-compute").__contains__))
def test_a_crash_is_the_workloads_under_every_layer(tmp_path: Path, layer: str) -> None:
    node = node_with(tmp_path, layer)
    done = node.run("--profile", layer, "--quiet", program=("--crash",))
    assert done.returncode == 139, done.stderr
    (record,) = node.manifest.passes
    assert (record.exit_status, node.manifest.exit_status) == (139, 139)
    told = [found.message for found in node.manifest.findings if found.id == "profiler-failed"]
    assert ["the workload was killed by SIGSEGV" in message for message in told] == [True]
    # the one tool that says something else itself
    assert node.findings == expected(
        layer, *(["profiler-changed-exit"] if layer == "rocprof-compute" else []), "profiler-failed"
    )
    intact(node, layer)


@pytest.mark.parametrize("layer", ["rocprofv3", *thorough(*TRACERS[1:], "rocprof-compute")])
def test_a_hang_at_exit_is_ended(tmp_path: Path, layer: str) -> None:
    node = node_with(tmp_path, layer)
    began = time.monotonic()
    done = node.run(
        "--profile",
        layer,
        "--quiet",
        "--exit-limit",
        "2",
        program=("--exit", "3"),
        STAND_IN_FINALIZE="hang",
    )
    assert time.monotonic() - began < 60  # it sleeps for ten minutes
    assert done.returncode == 3, done.stderr
    assert node.findings[0] == "profiler-hung"
    # the program is killed first, and the tools around it write their files then; one gives up
    # where the program fails
    assert launched(node, layer) == (0 if layer == "rocprof-compute" else 5)
    intact(node, layer)


@pytest.mark.parametrize("layer", ONE_OF_ALL)
@pytest.mark.parametrize(
    ("program", "variables"),
    [(("--kernels", "0"), {}), ((), {"STAND_IN_FINALIZE": "silent"})],
    ids=["no work", "no file"],
)
def test_nothing_recorded_is_said(
    tmp_path: Path, layer: str, program: tuple[str, ...], variables: dict[str, str]
) -> None:
    if layer == "amd-log" and variables:
        pytest.skip("its log is written call by call, not at the end")
    node = node_with(tmp_path, layer)
    status = 0 if layer == "rocprof-compute" else 2  # it gives up where the program fails
    done = node.run(
        "--profile", layer, "--quiet", program=(*program, "--exit", str(status)), **variables
    )
    assert done.returncode == status, done.stderr
    left = [artifact for artifact in node.manifest.artifacts if not artifact.aside]
    assert node.findings == expected(layer, "empty-trace" if left else "profiler-failed")
    assert launched(node, layer) == 0
    intact(node, layer)


@pytest.mark.parametrize("layer", but_for(LAYERS, ("rocprofv3", "amd-log").__contains__))
def test_two_ranks_are_told_apart_also_by_their_files_alone(tmp_path: Path, layer: str) -> None:
    """A killed run has a manifest that names no files yet."""
    node = node_with(tmp_path, layer)
    done = node.run("--profile", layer, "--quiet", "--ranks", "2")
    assert done.returncode == 0, done.stderr
    assert node.findings == expected(layer)
    assert sorted(
        (outcome.rank, outcome.exit_status) for outcome in node.manifest.rank_outcomes
    ) == [(0, 0), (1, 0)]
    assert launched(node, layer) == 10
    trace = intact(node, layer)
    assert sorted(
        source.rank for source in trace.sources if source.layer == layer and source.rank is not None
    ) == [0, 1]
    manifest = node.run_dir / "manifest.json"
    document = json.loads(manifest.read_text())
    whole = {
        (artifact.path, artifact.rank, artifact.host, artifact.aside)
        for artifact in node.manifest.artifacts
    }
    document["artifacts"] = []
    manifest.write_text(json.dumps(document))
    found = gather.all_artifacts(RunDir.open(node.run_dir), node.manifest)
    assert {
        (artifact.path, artifact.rank, artifact.host, artifact.aside) for artifact in found
    } == whole
    assert launched(node, layer) == 10


@pytest.mark.parametrize("ranks", [3, *thorough(8)])
def test_several_ranks(tmp_path: Path, ranks: int) -> None:
    layer = "rocprofv3"
    node = node_with(tmp_path, layer)
    done = node.run("--profile", layer, "--quiet", "--ranks", str(ranks))
    assert done.returncode == 0, done.stderr
    assert node.findings == []
    trace = intact(node, layer)
    assert launched(node, layer) == 5 * ranks
    kernels = [
        int((trace.kernels.source == position).sum())
        for position, source in enumerate(trace.sources)
        if source.layer == layer
    ]
    assert kernels == [5] * ranks
    assert sorted(source.rank for source in trace.sources if source.rank is not None) == list(
        range(ranks)
    )


@pytest.mark.parametrize("layer", ["rocprofv3", *thorough(*TRACERS[1:])])
def test_a_rank_that_crashes_is_the_jobs_status(tmp_path: Path, layer: str) -> None:
    node = node_with(tmp_path, layer)
    done = node.run("--profile", layer, "--quiet", "--ranks", "2", program=("--crash",))
    assert done.returncode == 139, done.stderr
    assert sorted(
        (outcome.rank, outcome.exit_status) for outcome in node.manifest.rank_outcomes
    ) == [(0, 139), (1, 139)]
    assert "profiler-failed" in node.findings
    intact(node, layer)


def test_layers_that_cannot_share_an_execution_ask_first(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.4")
    layers = ("rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute", "amd-log")
    refused = node.run("--profile", ",".join(layers))
    assert refused.returncode == 2
    assert "5 passes" in refused.stderr
    assert not node.run_dir.exists()
    too_few = node.run("--profile", ",".join(layers), "--passes", "4")
    assert too_few.returncode == 2
    assert not node.run_dir.exists()


def test_all_layers_together(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.4")
    layers = ("rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute", "amd-log")
    words = ("--profile", ",".join(layers), "--hip-trace")
    assert node.run(*words, "--yes", "--dry-run").returncode == 0
    done = node.run(*words, "--passes", "5", "--quiet")
    assert done.returncode == 0, done.stderr
    assert node.findings == ["serialising-counters"] * 2
    trace = intact(node, *layers)
    assert {layer: launched(node, layer) for layer in layers} == dict.fromkeys(layers, 5)
    # one file of each tracer speaks: nothing counts twice
    assert node.kernels() == ("rocprofv3", 5, 100_000)
    shapes = {
        source.layer: sorted(trace.kernels.workgroups[trace.kernels.source == position].tolist())
        for position, source in enumerate(trace.sources)
    }
    assert {
        shapes[layer] == [4, 5, 6, 7, 8] for layer in ("rocprofv3", "rocprof", "rocprof-compute")
    } == {True}


@pytest.mark.thorough
def test_a_program_that_fails_keeps_its_status_through_all_passes(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.4")
    layers = (*TRACERS, "rocprof-compute")
    done = node.run(
        "--profile", ",".join(layers), "--passes", "4", "--quiet", program=("--exit", "4")
    )
    assert done.returncode == 4, done.stderr
    assert [record.exit_status for record in node.manifest.passes] == [4] * 4
    # the last of them gives up, and says 1
    assert node.findings == ["profiler-changed-exit", "profiler-failed", "serialising-counters"]
    assert {layer: launched(node, layer) for layer in layers} == {
        **dict.fromkeys(TRACERS, 5),
        "rocprof-compute": 0,
    }
    intact(node, *layers)


@pytest.mark.thorough
def test_two_layers_with_two_ranks(tmp_path: Path) -> None:
    node = node_with(tmp_path, "rocprofv3")
    done = node.run("--profile", "rocprofv3,amd-log", "--passes", "2", "--ranks", "2", "--quiet")
    assert done.returncode == 0, done.stderr
    assert node.findings == ["serialising-counters"]
    intact(node, "rocprofv3", "amd-log")
    assert (launched(node, "rocprofv3"), launched(node, "amd-log")) == (10, 10)


def test_tables_of_a_tool_that_was_killed_are_read_as_one_set(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.3")
    assert node.run("--profile", "rocprofv3", "--hip-trace", "--quiet").returncode == 0
    (whole,) = (
        artifact for artifact in node.manifest.artifacts if artifact.format == "rocprofv3-json"
    )
    before = understand.load([node.run_dir]).trace
    manifest = node.run_dir / "manifest.json"
    text = manifest.read_text()
    # as a kill leaves it: half a JSON file, and a manifest that names none of the files yet
    (node.run_dir / whole.path).write_bytes((node.run_dir / whole.path).read_bytes()[:-40])
    document = json.loads(text)
    document["artifacts"] = []
    manifest.write_text(json.dumps(document))
    trace = understand.load([node.run_dir]).trace
    assert [source.format for source in trace.sources if source.layer == "rocprofv3"] == [
        "rocprofv3-csv"
    ]
    assert sorted(trace.kernels.start_ns.tolist()) == sorted(before.kernels.start_ns.tolist())
    assert len(trace.api) == len(before.api)
    assert [device.compute_units for device in trace.devices] == [304]
    assert sorted(trace.kernels.correlation.tolist()) == sorted(before.kernels.correlation.tolist())


# ---------------------------------------------------------------- scans


@pytest.mark.slow
@pytest.mark.parametrize("layer", LAYERS)
def test_a_scan_under_each_layer(tmp_path: Path, layer: str) -> None:
    """With the real torch under one tool; what stands around the worker is the same with the
    stand-in for it.
    """
    real = layer == "rocprofv3"
    if real:
        pytest.importorskip("torch")
    node = node_with(tmp_path, layer)
    done = node.scan("--profile", layer, torch=real)
    assert done.returncode == 0, done.stderr
    assert {(point.pass_name, point.state) for point in node.manifest.points} == {
        ("bare", "ok"),
        (layer, "ok"),
    }
    assert node.findings == expected(layer)
    intact(node, "bare", layer)
    if real:
        assert launched(node, layer) > 100  # one for each operator that torch ran
    else:
        assert launched(node, layer) == OPERATORS
    assert [
        artifact.pass_name
        for artifact in node.manifest.artifacts
        if artifact.layer == layer and artifact.pass_name != layer
    ] == []


@pytest.mark.thorough  # test_runs.py has a scan under two layers of the real torch
def test_a_scan_under_two_layers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    node = Node(tmp_path, "6.4")
    done = node.scan("--profile", "torch,rocprofv3", torch=True)
    assert done.returncode == 0, done.stderr
    assert {point.state for point in node.manifest.points} == {"ok"}
    trace = intact(node, "bare", *[record.name for record in node.manifest.passes[1:]])
    assert launched(node, "rocprofv3") > 100
    assert len(trace.ops) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "finding"),
    [
        ({"STAND_IN_FINALIZE": "hang"}, "profiler-hung"),
        *thorough(({"STAND_IN_FINALIZE": "silent"}, "profiler-failed")),
    ],
)
def test_a_scan_whose_tracer_fails_keeps_its_points(
    tmp_path: Path, variables: dict[str, str], finding: str
) -> None:
    node = node_with(tmp_path, "rocprofv3")
    done = node.scan("--profile", "rocprofv3", "--exit-limit", "2", **variables)
    assert done.returncode == 0, done.stderr
    assert {(point.pass_name, point.state) for point in node.manifest.points} == {
        ("bare", "ok"),
        ("rocprofv3", "ok"),
    }
    assert finding in node.findings
    intact(node, "bare", "rocprofv3")


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "accelerate")),
    reason="needs the extra training",
)
@pytest.mark.thorough  # wrappers/test_training.py has what it does without a tool around it
@pytest.mark.parametrize("layer", ["rocprofv3", "amd-log"])
def test_a_training_workload_by_name(tmp_path: Path, layer: str) -> None:
    """A workload's name is a command like any other, and those run under every layer above: a tool
    around the program and one in its environment show that a name gets there.
    """
    node = node_with(tmp_path, layer)
    done = node.profharness(
        "run",
        "train-cifar100",
        "--profile",
        layer,
        "--telemetry",
        "off",
        "--quiet",
        "--output",
        str(node.run_dir),
        "--",
        "--model",
        "vit",
        "--layers",
        "1",
        "--max-steps",
        "3",
        "--batch-size",
        "2",
        PYTHONPATH=str(SITE),
        OMP_NUM_THREADS="1",
    )
    assert done.returncode == 0, done.stderr
    assert "steps: 3 of batch 2 per rank, 1 rank(s), vit" in done.stdout
    assert node.findings == expected(layer)
    trace = intact(node, layer)
    assert launched(node, layer) > 3 * 100  # operators of three steps, as kernels
    steps = trace.marks.take(trace.marks.kind == trace.strings.find("step"))
    assert len(steps) >= 2  # ended by an optimizer's step each
