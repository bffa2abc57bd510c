"""A window cut out of what a tool recorded whole: by the log of steps, or by the clock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from profharness.rundir.manifest import ClockSnapshot, Manifest, PassRecord
from profharness.rundir.paths import RunDir
from profharness.trace.model import Api, ClockDomain, Kernels, Marks, Source, Strings, Trace
from profharness.understand.capture_window import Clocks, cut_passes, within_window

SLEPT = 1_000_000  # BOOTTIME is ahead of MONOTONIC by this much
AT = Clocks(
    {
        "n": tuple(
            ClockSnapshot(
                host="n",
                phase=phase,
                boot_ns=at + SLEPT,
                monotonic_ns=at,
                monotonic_raw_ns=at,
                realtime_ns=at,
                width_ns=1,
            )
            for phase, at in (("before", 0), ("after", 10_000))
        )
    },
    "n",
)


def made(root: Path, capture: str, *, steps: dict[int, list[int]]) -> RunDir:
    """A run whose pass began at 0 (MONOTONIC), with the ends of the steps of each process."""
    run = RunDir.create(root)
    for pid, ends in steps.items():
        path = run.artifacts_dir("steps", "n", str(pid)) / f"steps-{pid}.jsonl"
        path.write_text(
            "".join(json.dumps({"n": n, "monotonic_ns": at}) + "\n" for n, at in enumerate(ends))
        )
    run.write_manifest(
        Manifest(
            id="r",
            created="",
            profharness="0",
            kind="command",
            argv=(),
            passes=(
                PassRecord(
                    name="rocprofv3",
                    layers=("rocprofv3",),
                    cut=capture,
                    start_boot_ns=SLEPT,
                    end_boot_ns=SLEPT + 10_000,
                ),
            ),
        )
    )
    return run


def cut_to(run: RunDir, trace: Trace) -> Trace:
    return within_window(run, trace, replace(AT, cut=cut_passes(run.read_manifest())))


def recorded(pid: int = 5, clock: ClockDomain = ClockDomain.RUN) -> Trace:
    """A launch every 100 ns, whose kernel runs 250 ns later."""
    count = 10
    at = [SLEPT + 100 * number for number in range(count)]
    strings = Strings()
    api = Api.build(
        count,
        start_ns=at,
        dur_ns=10,
        name=strings.code("hipLaunchKernel"),
        correlation=range(count),
        pid=pid,
        tid=pid,
        source=0,
    )
    kernels = Kernels.build(
        count,
        start_ns=[start + 250 for start in at],
        dur_ns=50,
        name=strings.code("k"),
        correlation=range(count),
        source=0,
    )
    return Trace(
        sources=(
            Source(
                path="a",
                format="rocpd",
                clock=clock,
                host="n",
                pid=pid,
                pass_name="rocprofv3",
                layer="rocprofv3",
            ),
        ),
        strings=strings,
        api=api,
        kernels=kernels,
    )


@pytest.mark.parametrize(
    ("capture", "first", "count"),
    [
        ("steps=2:4", 4, 4),  # steps end every 200 ns: step 2 lasts from 400 to 600
        ("steps=0:1", 0, 2),
        ("steps=3:99", 6, 4),
        ("steps=50:60", 0, 0),
        ("after=300ns,for=200ns", 3, 2),
        ("after=300ns", 3, 7),
        ("for=200ns", 0, 2),
    ],
)
def test_records_stay_where_their_launches_are(
    tmp_path: Path, capture: str, first: int, count: int
) -> None:
    run = made(tmp_path / "run", capture, steps={5: [200, 400, 600, 800]})
    kept = cut_to(run, recorded())
    assert kept.api.start_ns.tolist() == [
        SLEPT + 100 * number for number in range(first, first + count)
    ]
    assert kept.kernels.start_ns.tolist() == [
        SLEPT + 100 * number + 250 for number in range(first, first + count)
    ]
    assert kept.problems == ()


def test_a_process_without_steps_keeps_what_lies_in_those_of_the_others(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "steps=1:2", steps={6: [200, 400], 7: [300, 500]})
    assert len(cut_to(run, recorded()).api) == 3  # 200 to 500


def test_what_cannot_be_cut_stays_and_says_so(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "steps=1:2", steps={})
    for trace in (recorded(), recorded(clock=ClockDomain.UNKNOWN)):
        kept = cut_to(run, trace)
        assert len(kept.kernels) == 10
        assert "nothing was cut off" in kept.problems[0].message


def test_other_passes_are_left_alone(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "", steps={5: [200]})
    trace = recorded()
    assert cut_to(run, trace) is trace


def test_steps_outside_of_the_window_go_with_their_device_work(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "steps=2:4", steps={5: [200, 400, 600, 800]})
    strings = Strings()
    starts = [SLEPT + 200 * number for number in range(1, 4)]
    marks = Marks.build(
        3,
        start_ns=starts,
        dur_ns=200,
        kind=strings.code("step"),
        name=strings.codes(f"step {n}" for n in (1, 2, 3)),
        pid=5,
        source=0,
    )
    log = Source(
        path="steps-5.jsonl",
        format="steps",
        clock=ClockDomain.RUN,
        host="n",
        pid=5,
        pass_name="rocprofv3",
        layer="steps",
    )
    kept = cut_to(run, Trace(sources=(log,), strings=strings, marks=marks))
    assert [strings[int(code)] for code in kept.marks.name] == ["step 2", "step 3"]
