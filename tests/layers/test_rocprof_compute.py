"""What rocprof-compute is told, by its own version: where it writes, in how many executions, its
analysis afterwards, and what a user hears before.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from profharness.errors import UsageError
from profharness.layers import named, releases
from profharness.layers.options import TracerOptions
from profharness.node.probe import Device, Environment
from profharness.options.settings import from_mapping
from profharness.supervise.diagnosis import refusal
from tests.fakes.amd_tools import rocprof_compute
from tests.layers.places import TRAIN, node, planned, where, words

FOLDER = "/run/artifacts/rocprof-compute/node1/0/rocprof-compute"
OLD, SETS, ONE = "7.0", "7.1", "7.12"  # own versions 3.2, 3.3 and 3.5
(LAYER,) = named(("rocprof-compute",))


def told(release: str, **options: Any) -> str:
    """The words of the tool itself, up to the command."""
    return words(planned(release, "rocprof-compute", TracerOptions(**options))).split(" -- ")[0]


@pytest.mark.parametrize(
    ("release", "program", "read", "written"),
    [
        ("6.2", "omniperf", "/GPU_MODEL", "--save-dfs {}/analysis"),
        ("6.3", "rocprof-compute", "/GPU_MODEL", "--save-dfs {}/analysis"),
        (OLD, "rocprof-compute", "/GPU_MODEL", "--save-dfs {}/analysis"),
        (
            SETS,
            "rocprof-compute",
            "/GPU_MODEL",
            "--output-format csv --output-name analysis",
        ),
        (ONE, "rocprof-compute", "", "--output-format csv --output-name analysis"),
        ("10.2", "rocprof-compute", "", "--output-format csv --output-name analysis"),
    ],
)
def test_its_analysis_follows(release: str, program: str, read: str, written: str) -> None:
    (after,) = LAYER.follow_up(where(release, "rocprof-compute"))
    folder = f"{FOLDER}{read}"
    assert words(after) == f"{program} analyze -p {folder} {written.format(folder)}"
    # the newer ones take no path as a name: they write below the working directory
    assert after.cwd == (None if "--save-dfs" in written else Path(folder))


@pytest.mark.parametrize(
    "table",
    [
        "MI300X_A1/pmc_perf.csv",
        "profharness/MI300X_A1/pmc_perf.csv",
        "results_pmc_perf_0.csv",
        "3/results_pmc_perf_SQ_LEVEL_WAVES.csv.gz",
        "3/out/pmc_1/node1/71_results.db",
    ],
)
def test_its_analysis_reads_what_lies_in_the_folder_or_below_the_rank(
    tmp_path: Path, table: str
) -> None:
    place = where("10.2", "rocprof-compute", run_root=tmp_path)
    folder = tmp_path / "artifacts" / "rocprof-compute" / "node1" / "0" / "rocprof-compute"
    path = folder / table
    path.parent.mkdir(parents=True)
    path.touch()
    (folder / "sysinfo.csv").touch()
    workload = folder / table.partition("/out/")[0] if "/out/" in table else path.parent
    (after,) = LAYER.follow_up(place)
    assert after.argv[3] == str(workload)
    (workload / "analysis").mkdir()  # of a run that was interrupted: the name is taken
    (again,) = LAYER.follow_up(place)
    assert again.argv[-1] == "analysis_2"


def test_ceilings_are_measured_where_they_are_asked_for() -> None:
    assert told(OLD).endswith("--no-roof")
    assert "--no-roof" not in told(OLD, roofline=True)
    costs = LAYER.extras(TRAIN, where(OLD, "rocprof-compute", TracerOptions(roofline=True))).costs
    assert [cost for cost in costs if "ceilings" in cost]


@pytest.mark.parametrize(
    ("release", "options", "expected"),
    [
        (ONE, {"one_execution": True}, "--no-roof --iteration-multiplexing kernel_launch_params"),
        ("10.2", {"one_execution": True}, "--iteration-multiplexing kernel_launch_params"),
        (SETS, {"pmc_set": "launch_stats"}, "--no-roof --set launch_stats"),
        ("", {"one_execution": True}, "--iteration-multiplexing kernel_launch_params"),
    ],
)
def test_one_execution(release: str, options: dict[str, Any], expected: str) -> None:
    assert told(release, **options).endswith(expected)
    costs = LAYER.extras(TRAIN, where(release, "rocprof-compute", TracerOptions(**options))).costs
    assert "one execution" in costs[0]
    extras = LAYER.extras(TRAIN, where(release, "rocprof-compute", TracerOptions(**options)))
    assert extras.starts == (1, 1)
    assert LAYER.extras(TRAIN, where(release, "rocprof-compute")).starts == (12, 20)
    assert not [cost for cost in costs if "12 to 20" in cost]


@pytest.mark.parametrize(
    ("release", "options", "said", "way_out"),
    [
        ("6.2", {"one_execution": True}, "omniperf of ROCm 6.2", "rocprof-compute 3.5"),
        (SETS, {"one_execution": True}, "rocprof-compute 3.3 of ROCm 7.1", r"3.5 \(ROCm 7.12\)"),
        (OLD, {"pmc_set": "mem"}, "--pmc-set mem: rocprof-compute 3.2", r"3.3 \(ROCm 7.1\)"),
        (ONE, {"pmc_set": "a", "one_execution": True}, "in different ways", "leave one out"),
        (
            ONE,
            {"tool_args": {"rocprof-compute-analyze": ("--gui",)}},
            "rocprof-compute-analyze:--gui opens a screen",
            "on the folder of the run",
        ),
        (
            ONE,
            {"tool_args": {"rocprof-compute-analyze": ("--output-name=x",)}},
            "says itself where the analysis reads and writes",
            "leave it out",
        ),
    ],
)
def test_what_a_version_cannot_do(
    release: str, options: dict[str, Any], said: str, way_out: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        told(release, **options)
    assert re.search(way_out, caught.value.hint or "")


@pytest.mark.parametrize(
    ("release", "argument", "way_out"),
    [
        (OLD, "-p", "the harness names the folder"),
        (ONE, "--output-directory=/x", "the harness names the folder"),
        ("10.2", "-d", "the harness names the folder"),
        (ONE, "--list-sets", "starts no command"),
        (ONE, "--attach-pid", "another process"),
    ],
)
def test_arguments_that_take_the_run_out_of_our_hands_are_refused(
    release: str, argument: str, way_out: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(f"rocprof-compute:{argument}")) as caught:
        told(release, tool_args={"rocprof-compute": (argument,)})
    assert way_out in caught.value.hint
    assert " -d 3 " in told("10.1", tool_args={"rocprof-compute": ("-d", "3")}) + " "


def test_further_arguments_reach_both_steps() -> None:
    settings = {
        "command": ("python", "train.py"),
        "profile": "rocprof-compute",
        "tool_arg": (
            "rocprof-compute:-k",
            "rocprof-compute:gemm",
            "rocprof-compute-analyze:-b",
            "rocprof-compute-analyze:2.1",
        ),
    }
    options = from_mapping(settings, "the command line").tracer
    place = where(ONE, "rocprof-compute", options)
    assert words(LAYER.prepare(TRAIN, place)).partition(" -- ")[0].endswith("--no-roof -k gemm")
    assert words(LAYER.follow_up(place)[0]).endswith("--output-name analysis -b 2.1")
    with pytest.raises(UsageError, match="--tool-arg: rocprof-compute was not asked for"):
        _ = from_mapping({**settings, "profile": "rocprofv3"}, "the command line").tracer


def test_hours_that_may_count_nothing_are_announced() -> None:
    def costs(environment: Environment) -> str:
        place = where(OLD, "rocprof-compute", environment=environment)
        return " ".join(LAYER.extras(TRAIN, place).costs)

    here = node(OLD)
    assert "12 to 20 times by itself" in costs(here)
    assert "may count nothing" not in costs(here)
    assert "may count nothing: no AMD device is seen" in costs(
        msgspec.structs.replace(here, devices=())
    )
    desktop = Device(index=0, kind="rocm", architecture="gfx1100")
    assert "Instinct devices, and here is gfx1100" in costs(
        msgspec.structs.replace(here, devices=(desktop,))
    )
    apu = Device(index=0, kind="rocm", architecture="gfx1151")
    assert "here is gfx1151" in costs(msgspec.structs.replace(here, devices=(apu,)))
    newer = msgspec.structs.replace(node(ONE), devices=(apu,))
    place = where(ONE, "rocprof-compute", environment=newer)
    assert len(LAYER.extras(TRAIN, place).costs) == 1


def test_ranks_that_are_started_again_one_by_one_are_announced() -> None:
    for options, told_of in ((TracerOptions(), True), (TracerOptions(one_execution=True), False)):
        for rank in (None, 1):  # None: what will start them
            place = replace(where(ONE, "rocprof-compute", options, rank=rank), ranks=2)
            costs = " ".join(LAYER.extras(TRAIN, place).costs)
            assert ("ranks that wait for each other may hang" in costs) == told_of
            costs = " ".join(LAYER.extras(TRAIN, replace(place, untraced=True)).costs)
            assert ("will hang or fail in its second execution" in costs) == told_of


def test_each_boundary_is_a_known_version() -> None:
    """The versions from which something is taken are versions that a release has."""
    known = {row.compute for row in releases.RELEASES}
    assert {(3, 3), (3, 5), (3, 8)} <= known


OPTIONS = (
    TracerOptions(),
    TracerOptions(roofline=True),
    TracerOptions(one_execution=True),
    TracerOptions(pmc_set="launch_stats"),
)


@pytest.mark.parametrize("release", [*rocprof_compute.OLD_RELEASES, *rocprof_compute.RELEASES])
@pytest.mark.parametrize("options", OPTIONS)
def test_each_version_takes_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, options: TracerOptions
) -> None:
    """The stand-in for that version has the options of it and no others."""
    monkeypatch.setenv("STAND_IN_COMPUTE", "silent")
    place = where(release, "rocprof-compute", options, run_root=tmp_path)
    try:
        command = LAYER.prepare(TRAIN, place)
    except UsageError:
        own = releases.of_rocm(releases.parse(release) or (0,)).compute
        assert own < ((3, 5) if options.one_execution else (3, 3))
        return
    assert rocprof_compute.play(command.argv[0], release, list(command.argv[1:])) == 0
    tables = tmp_path / "artifacts" / "rocprof-compute" / "node1" / "0" / "rocprof-compute"
    tables.mkdir(parents=True)
    (tables / "pmc_perf.csv").write_text("Dispatch_ID\n")
    (after,) = LAYER.follow_up(place)
    monkeypatch.chdir(after.cwd or tmp_path)
    assert rocprof_compute.play(after.argv[0], release, list(after.argv[1:])) == 0
    assert list((tables / "analysis").iterdir())


@pytest.mark.parametrize(
    ("release", "arguments", "said"),
    [
        ("7.14", "profile -n x -p y", "unrecognized arguments: -p y"),
        ("7.0", "profile -n x --output-directory y", "unrecognized arguments: --output-directory"),
        ("7.14", "profile -n x --overwrite", "unrecognized arguments: --overwrite"),
        ("7.13", "profile -n x --hip-trace", "unrecognized arguments: --hip-trace"),
        ("10.1", "profile -n x --join-type grid", "unrecognized arguments: --join-type grid"),
        ("7.1", "analyze -p y --save-dfs z", "unrecognized arguments: --save-dfs z"),
        ("7.0", "analyze -p y --output-format csv", "unrecognized arguments: --output-format csv"),
        ("7.12", "profile -n x --torch-trace", "Torch trace is an experimental feature. Use"),
        ("7.12", "profile -n x --iteration-multiplexing grid", "invalid choice: 'grid'"),
    ],
)
def test_each_version_refuses_the_rest_in_words_that_are_understood(
    capsys: pytest.CaptureFixture[str], release: str, arguments: str, said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        rocprof_compute.play("rocprof-compute", release, [*arguments.split(), "--", "true"])
    text = capsys.readouterr().err
    assert (caught.value.code, said in text) == (2, True), text
    assert said in refusal(text)
