"""--step-range on loose files and runs: rocprofv3's CSV and JSON, Kineto, a real run, and a merge
in memory and in parts.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from profharness.trace.parts.cutting import Cut, StepRange
from profharness.understand import report_run as understand
from profharness.understand.load import load
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.merge.command import MergeOptions, merge_to_file
from profharness.understand.steps import stepped
from tests.fakes.rocprofv3_files import write_csv, write_json
from tests.fakes.rocprofv3_program import Call, Kernel, Program, Symbol
from tests.fakes.stand_in_node import Node
from tests.readers.kineto.kineto_files import document, event, kernel, launch, write
from tests.run_files import run_of
from tests.runs.test_run_forms import made
from tests.understand.merge.decoded_records import records
from tests.writers.decode import decode

START = 63_857_982_592_000
LONG = 100_000
FIRST, OTHER = 15_000, 110_000
"""How long steps take on the device: the first one from its range to the end of its kernel, each
other one from there to the end of its own, which lasts 10 µs longer.
"""
COUNT = 4


def ranged(name: str = "iteration {}", first: int = 3) -> Program:
    """A program in C++: ranges of its own of 100 µs, in each the launch of a kernel of 10, 20, 30
    and 40 µs.
    """
    calls, kernels = [], []
    for number in range(COUNT):
        at = START + number * LONG
        calls += [
            Call(
                "MARKER_CORE_RANGE_API",
                "roctxThreadRangeA",
                at,
                at + LONG,
                900 + number,
                4711,
                name.format(number + first),
            ),
            Call(
                "MARKER_CORE_RANGE_API",
                "roctxThreadRangeA",
                at + 500,
                at + 600,
                800 + number,
                4711,
                "load",
            ),
            Call("HIP_RUNTIME_API", "hipLaunchKernel", at + 1000, at + 2000, number + 1, 4711),
        ]
        kernels.append(
            Kernel(
                10,
                at + 5000,
                at + 5000 + 10_000 * (number + 1),
                2,
                number + 1,
                number + 1,
                (256, 1, 1),
                (256, 1, 1),
                tid=4711,
            )
        )
    return Program(symbols=(Symbol(10, "gemm"),), kernels=tuple(kernels), calls=tuple(calls))


def files(folder: Path, form: str, given: Program) -> list[str]:
    folder.mkdir(exist_ok=True)
    if form == "csv":
        return [
            str(path)
            for path in write_csv(folder, given, "7.0")
            if path.name.endswith("_trace.csv")
        ]
    if form == "json":
        return [str(write_json(folder / "results.json", given))]
    base = START // 1000 * 1000
    events = [
        event(
            "user_annotation",
            call.message,
            (call.start - base) / 1000,
            (call.end - call.start) / 1000,
        )
        for call in given.calls
        if call.message
    ]
    events += [
        launch(call.name, (call.start - base) / 1000, 1.0, call.correlation)
        for call in given.calls
        if not call.message
    ]
    events += [
        kernel("gemm", (k.start - base) / 1000, (k.end - k.start) / 1000, correlation=k.correlation)
        for k in given.kernels
    ]
    return [str(write(folder / "kineto.json", document(events, baseTimeNanoseconds=base)))]


def shown(capsys, *words: str) -> dict:
    assert run_cli(["metrics", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def table(document: dict) -> list[tuple]:
    return [
        (one["step"], one["number"], one["dur_ns"], one["metrics"]["compute"]["value"])
        for one in document["steps"]
    ]


FORMS = ["csv", "json", "kineto"]


@pytest.mark.parametrize("form", FORMS)
def test_ranges_of_a_program_are_its_steps(tmp_path, capsys, form):
    paths = files(tmp_path / "a", form, ranged("work {}"))
    assert run_cli(["metrics", *paths, "--steps", "all"]) == 0
    assert "steps: none are marked in the trace" in capsys.readouterr().out.splitlines()
    found = shown(capsys, *paths, "--steps", "4:6", "--step-range", r"work \d+")
    assert table(found) == [("work 4", 4, OTHER, 2 / 11), ("work 5", 5, OTHER, 3 / 11)]
    assert found["steps_from"] == r"ranges whose name matches 'work \d+'"
    assert "4 steps" in found["metrics"]["compute"]["from"]
    assert run_cli(["metrics", *paths, "--step-range", r"work \d+"]) == 0
    assert r"steps     ranges whose name matches 'work \d+'" in capsys.readouterr().out.splitlines()
    assert run_cli(["metrics", *paths, "--steps", "0:3", "--step-range", r"work \d+"]) == 2
    assert "steps 0:3: no record is left\n  the trace holds steps 3 to 6" in capsys.readouterr().err


@pytest.mark.parametrize("form", FORMS)
def test_ranges_without_a_number_are_counted(tmp_path, capsys, form):
    found = shown(
        capsys,
        *files(tmp_path / "a", form, ranged("train_step")),
        "--steps",
        "2:",
        "--step-range",
        "train_step",
    )
    assert table(found) == [("train_step 2", 2, OTHER, 3 / 11), ("train_step 3", 3, OTHER, 4 / 11)]


@pytest.mark.parametrize("form", FORMS)
def test_names_that_say_step_and_number_need_no_option(tmp_path, capsys, form):
    found = shown(capsys, *files(tmp_path / "a", form, ranged("Iteration {}")), "--steps", "3")
    assert table(found) == [("Iteration 3", 3, FIRST, 2 / 3)]
    assert (
        found["steps_from"]
        == "ranges named like 'Iteration 3', since the trace marks no other steps"
    )


def test_steps_that_a_tool_marks_go_before_names(tmp_path, capsys):
    (path,) = files(tmp_path, "kineto", ranged("step {}"))
    content = json.loads(Path(path).read_text())
    content["traceEvents"].append(event("user_annotation", "ProfilerStep#9", 0, 400.0))
    write(Path(path), content)
    found = shown(capsys, path, "--steps", "all")
    assert ([one["step"] for one in found["steps"]], "steps_from" in found) == (
        ["ProfilerStep#9"],
        False,
    )
    found = shown(capsys, path, "--steps", "all", "--step-range", r"step \d")
    assert [one["number"] for one in found["steps"]] == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--step-range", "work ("),
            (
                "--step-range: 'work (' is not a regular expression (missing ), "
                "unterminated subpattern at position 5)"
            ),
        ),
        (
            ("--step-range", "wrk.*"),
            (
                "--step-range wrk.*: no range of the program has a name that matches as a whole\n"
                "  ranges there are 'load', 'work 3'"
            ),
        ),
        (("--step-range", "work"), "ranges there are"),
    ],
)
def test_what_matches_nothing_is_a_usage_error(tmp_path, capsys, words, said):
    paths = files(tmp_path / "a", "json", ranged("work {}"))
    for command in (
        ["metrics", *paths],
        ["metrics", *paths, *files(tmp_path / "b", "json", ranged("work {}"))],
        ["merge", *paths, "--steps", "3:5", "-o", str(tmp_path / "m.pftrace")],
        [
            "merge",
            *paths,
            *files(tmp_path / "b", "json", ranged("work {}")),
            "--allow-unaligned",
            "--steps",
            "3:5",
            "-o",
            str(tmp_path / "m.pftrace"),
        ],
    ):
        assert run_cli([*command, *words]) == 2, command
        assert said in capsys.readouterr().err
    assert not (tmp_path / "m.pftrace").exists()


def test_files_in_which_none_matches_say_so_beside_the_others(tmp_path, capsys):
    one, other = (
        files(tmp_path / "a", "json", ranged("work {}")),
        files(tmp_path / "b", "json", replace(ranged("job {}"), host="node2")),
    )
    found = shown(capsys, *one, *other, "--step-range", r"work \d+")
    assert found["steps_from"] == r"ranges whose name matches 'work \d+'"
    (said,) = [one["message"] for one in found["findings"] if one["id"] == "step-range-unmatched"]
    assert said == (
        r"results.json: --step-range work \d+: no range of the program has a name that "
        r"matches as a whole; ranges there are 'job 3', 'load'"
    )


def test_merge_keeps_steps_of_the_ranges_named(tmp_path, capsys):
    paths = files(tmp_path / "a", "json", ranged("work {}"))
    target = tmp_path / "m.pftrace"
    assert (
        run_cli(["merge", *paths, "--steps", "4:6", "--step-range", r"work \d+", "-o", str(target)])
        == 0
    )
    assert sorted(one.dur for one in decode(target).gpu) == [20_000, 30_000]
    assert (
        run_cli(
            [
                "merge",
                *paths,
                "--steps",
                "9:",
                "--step-range",
                r"work \d+",
                "-o",
                str(target),
                "--force",
            ]
        )
        == 2
    )
    assert "steps 9:: no record is left\n  the trace holds steps 3 to 6" in capsys.readouterr().err
    assert run_cli(["merge", *paths, "--step-range", "x", "-o", str(target), "--force"]) == 2
    assert "--step-range belongs to --steps" in capsys.readouterr().err
    named = files(tmp_path / "b", "json", ranged("iter {}"))
    assert run_cli(["merge", *named, "--steps", "6:", "-o", str(target), "--force"]) == 0
    assert [one.dur for one in decode(target).gpu] == [40_000]


PARTS = Workers(processes=1)


def same_in_parts(run: RunDir, folder: Path, cut: Cut) -> int:
    """How many kernels are kept, the same whether the run is merged in memory or in parts."""
    found = []
    for name, workers in (("whole", IN_ONE), ("parts", PARTS)):
        report = merge_to_file(
            [run.root],
            folder / f"{name}.pftrace",
            MergeOptions(cut=cut, workers=workers, force=True),
        )
        found.append(records(decode(report.path)))
    assert found[0] == found[1]
    return sum(found[0]["gpu"].values())


@pytest.mark.slow
def test_a_merge_in_parts_is_one_in_memory(tmp_path):
    run = run_of(tmp_path / "run", ranks=2)
    everything = same_in_parts(run, tmp_path, Cut())
    points = Cut(steps=(0, 1), step_range=StepRange("profharness.range:none|ProfilerStep#.*"))
    assert 0 < same_in_parts(run, tmp_path, Cut(steps=(2, 3))) < everything
    said = []
    for workers in (IN_ONE, PARTS):
        with pytest.raises(UsageError) as refused:
            merge_to_file(
                [run.root],
                tmp_path / "n.pftrace",
                MergeOptions(cut=replace(points, step_range=StepRange("none")), workers=workers),
            )
        said.append((refused.value.message, refused.value.hint))
    assert said[0] == said[1]
    assert same_in_parts(run, tmp_path, replace(points, steps=(2, 3))) == same_in_parts(
        run, tmp_path, Cut(steps=(2, 3))
    )


@pytest.mark.parametrize(("name", "pattern"), [("work {}", r"work (\d+)"), ("iteration {}", "")])
def test_a_run_of_ranges_in_parts_is_one_in_memory(tmp_path, name, pattern):
    run = made(tmp_path / "made", ranged(name), "json")
    assert (
        same_in_parts(
            run, tmp_path, Cut(steps=(4, None), step_range=StepRange(pattern) if pattern else None)
        )
        == 3
    )
    recorded = msgspec.structs.replace(run.read_manifest(), step_range="load")
    run.write_manifest(recorded)  # the ranges of 100 ns hold no launch, and so no kernel
    with pytest.raises(UsageError, match="steps 7:: no record is left") as refused:
        merge_to_file([run.root], tmp_path / "n.pftrace", MergeOptions(cut=Cut(steps=(7, None))))
    assert refused.value.hint == "the trace holds steps 0 to 3"


def recorded(run: RunDir, pattern: str) -> Manifest:
    manifest = msgspec.structs.replace(run.read_manifest(), step_range=pattern)
    run.write_manifest(manifest)
    return manifest


def test_what_a_run_recorded_counts_from_then_on(tmp_path, capsys):
    run = made(tmp_path / "made", ranged("work {}"), "json")
    recorded(run, "nothing")
    summary = understand.finish(run.root)
    (said,) = [one for one in summary.findings if one.id == "step-range-unmatched"]
    assert said.message == (
        "--step-range nothing: no range of the program has a name that matches as a whole; "
        "ranges there are 'load', 'work 3'"
    )
    assert run_cli(["report", str(run.root), "--step-range", "nothing"]) == 2
    assert "ranges there are 'load', 'work 3'" in capsys.readouterr().err
    assert run_cli(["report", str(run.root), "--step-range", r"work \d+"]) == 0
    assert (
        json.loads((run.root / "summary.json").read_text())["steps_from"]
        == r"ranges whose name matches 'work \d+'"
    )
    recorded(run, r"work (\d+)")
    assert run_cli(["report", str(run.root)]) == 0
    capsys.readouterr()
    assert (
        json.loads((run.root / "summary.json").read_text())["steps_from"]
        == r"ranges whose name matches 'work (\d+)'"
    )
    assert "work (" in (run.root / "report.html").read_text()
    assert table(shown(capsys, str(run.root), "--steps", "5:")) == [
        ("work 5", 5, OTHER, 3 / 11),
        ("work 6", 6, OTHER, 4 / 11),
    ]
    assert table(shown(capsys, str(run.root), "--steps", "1", "--step-range", "load"))[0][:3] == (
        "load 1",
        1,
        100,
    )


def test_ranges_that_match_are_no_finding(tmp_path):
    run = made(tmp_path / "made", ranged("work {}"), "json")
    recorded(run, r"work \d+")
    loaded = load([run.root])
    found = understand.summarise(loaded)
    assert "step-range-unmatched" not in {one.id for one in found.findings}
    rate = COUNT * 1e9 / (FIRST + 3 * OTHER)
    assert found.metrics["steps_per_second"].value == pytest.approx(rate)
    assert found.metrics["steps_per_second"].source == "rocprofv3 pass, 4 steady steps"
    assert stepped(loaded).findings == loaded.findings


def test_the_steps_of_a_scan_are_its_trials(tmp_path):
    run = made(tmp_path / "made", ranged("work {}"), "json")
    run.write_manifest(msgspec.structs.replace(run.read_manifest(), kind="scan"))
    with pytest.raises(UsageError, match="a scan's steps are its trials"):
        understand.summarise(load([run.root]), "work .*")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("particlenet", "--step-range", "x"),
            "--step-range is for commands, and a scan was asked for",
        ),
        (("--step-range", "x(", "--", "true"), "--step-range: 'x(' is not a regular expression"),
    ],
)
def test_the_option_of_run_is_checked_before_anything_starts(tmp_path, capsys, words, said):
    assert (
        run_cli(["run", "--dry-run", "--telemetry", "off", "-o", str(tmp_path / "run"), *words])
        == 2
    )
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_keeps_what_its_steps_are(tmp_path, capsys):
    node = Node(tmp_path, "7.0", roctx=True)
    done = node.run(
        "--profile", "rocprofv3", "--step-range", r"epoch (\d+)", program=("--range", "epoch 7")
    )
    assert done.returncode == 0, done.stderr
    assert node.manifest.step_range == r"epoch (\d+)"
    assert (
        json.loads((node.run_dir / "summary.json").read_text())["steps_from"]
        == r"ranges whose name matches 'epoch (\d+)'"
    )
    found = shown(capsys, str(node.run_dir), "--steps", "all")
    assert [(one["step"], one["number"]) for one in found["steps"]] == [("epoch 7", 7)]


@pytest.mark.slow
def test_recorded_annotations_as_steps(shared, capsys):
    path = str(shared / "fixtures/kineto/a100_nccl_rank0of2.json.gz")
    found = shown(capsys, path, "--steps", "1:", "--step-range", "DistributedDataParallel.forward")
    events = json.loads(gzip.decompress(Path(path).read_bytes()), parse_float=Decimal)[
        "traceEvents"
    ]
    called = {
        one["args"]["correlation"]: one["ts"]
        for one in events
        if one.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in one["args"]
    }
    work = [one for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    lengths = []
    for mark in sorted(
        (
            one
            for one in events
            if one.get("cat") == "user_annotation" and one["name"].startswith("DistributedDataPar")
        ),
        key=lambda one: one["ts"],
    ):
        ends = [
            one["ts"] + one["dur"]
            for one in work
            if mark["ts"] <= called[one["args"]["correlation"]] < mark["ts"] + mark["dur"]
        ]
        lengths.append(int(1000 * (max(ends) - mark["ts"])))
    # backward stands between the marks, and its work has ended when the next one begins
    assert [(one["step"], one["number"], one["dur_ns"]) for one in found["steps"]] == [
        (f"DistributedDataParallel.forward {number}", number, lengths[number]) for number in (1, 2)
    ]
    path = str(shared / "fixtures/kineto/a100_train_rank3of8_intus.json.gz")
    assert run_cli(["metrics", path, "--step-range", "step.*"]) == 2
    assert "ranges there are 'nccl:all_to_all', 'nccl:all_reduce', " in capsys.readouterr().err
