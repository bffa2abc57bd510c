from __future__ import annotations

import msgspec
import pytest

from profharness.analysis.records import Figure, Summary
from profharness.errors import Unavailable
from profharness.report.tables.scan import withheld
from profharness.report.text.terminal import render, render_error, wrapped_items
from tests.report.samples import SAMPLES, command, cpu_scan, failing, gpu_scan

T = "\u2009"


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_plain_text_fits_and_shows_no_holes(name: str, width: int) -> None:
    text = render(
        SAMPLES[name](),
        width,
        color=False,
        made=(("traces/x/report.html", "profharness view traces/x"),),
    )
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= width
    assert "None" not in text
    assert "nan" not in text.lower().replace("provenance", "").split()
    assert "…" not in text.partition("Answer")[0] or name in {"command", "odd_numbers"}
    assert text.endswith("traces/x/report.html    profharness view traces/x\n")
    for line in ("Answer", "Next", "Trust"):
        assert any(row.startswith(line) for row in text.splitlines())


def test_what_was_made_is_never_broken_so_that_it_can_be_copied() -> None:
    root = "traces/20261120T151801-a-name-that-is-long-enough-to-fill-the-line"
    made = ((f"{root}/report.html", ""), (f"{root}/merged.pftrace", f"profharness view {root}"))
    assert render(cpu_scan(), 80, color=False, made=made).splitlines()[-3:] == [
        f"{root}/report.html",
        f"{root}/merged.pftrace",
        f"  profharness view {root}",
    ]


def test_the_scan_table_holds_the_columns_that_apply() -> None:
    head = render(gpu_scan(), 140, color=False).splitlines()[0]
    assert head.split() == [
        "batch",
        "backend",
        "jets/s",
        "latency",
        "p50",
        "GPU",
        "%",
        "fill",
        "power",
        "J/jet",
        "verdict",
    ]
    assert render(cpu_scan(), 140, color=False).splitlines()[0].split() == [
        "batch",
        "jets/s",
        "latency",
        "p50",
        "cores",
        "verdict",
    ]


def test_a_run_with_kernels_was_none_of_the_cpu_whatever_the_probe_saw() -> None:
    summary = command()
    assert summary.run is not None
    unseen = msgspec.structs.replace(
        summary, run=msgspec.structs.replace(summary.run, device="cpu")
    )
    text = render(unseen, 120, color=False)
    assert "The GPU computes" in text
    assert "The CPU" not in text


def test_a_row_reads_as_measured() -> None:
    rows = render(gpu_scan(), 140, color=False).splitlines()
    assert rows[7].split()[0] == "256"
    assert f"24{T}281 ± 97" in rows[7]
    assert "10.62 ms" in rows[7]
    assert rows[1].endswith("host: launches (67 % of the time)")


def test_a_repeated_verdict_keeps_its_label_only() -> None:
    rows = render(gpu_scan(), 140, color=False).splitlines()
    assert rows[6].endswith("bandwidth: EdgeConv gathers at 71 % of the measured copy")
    assert rows[7].endswith("bandwidth")


def without_verdicts(*reasons: str) -> Summary:
    """The scan of a CPU whose first points have no verdict, for these reasons."""
    scan = cpu_scan()
    held = [
        msgspec.structs.replace(
            point,
            verdict=None,
            verdict_needs=f"{why}; the process ran on 1.4 of 8 allowed cores",
        )
        for point, why in zip(scan.points, reasons, strict=False)
    ]
    return msgspec.structs.replace(scan, points=(*held, *scan.points[len(held) :]))


SHORT = "a longer time, as less than 1 s was sampled (503.5 ms)"


def test_the_reason_of_a_withheld_verdict_stands_below_the_table_once() -> None:
    rows = render(without_verdicts(SHORT, SHORT), 80, color=False).splitlines()
    assert [row.split("   ")[-1].strip() for row in rows[1:4]] == [
        "no verdict",
        "no verdict",
        "cores idle (55 %)",
    ]
    assert [row for row in rows if row.startswith("no verdict")] == [f"no verdict: needs {SHORT}"]
    assert rows[10] == f"no verdict: needs {SHORT}"  # nine points below the heads
    varied = withheld(without_verdicts(SHORT, SHORT.replace("503.5", "501.2")))
    assert varied == ("no verdict: needs a longer time, as less than 1 s was sampled",)
    assert withheld(cpu_scan()) == ()


def test_several_reasons_name_their_points() -> None:
    held = "a quiet node, as other work held the cores (1.2 on average)"
    summary = without_verdicts(SHORT, held, held, held, held, held)
    assert withheld(summary) == (
        f"no verdict at batch 1: needs {SHORT}",
        f"no verdict at batch 2, batch 4, batch 8, batch 16 and 1 more: needs {held}",
    )
    many = without_verdicts("a", "b", "c", "d", "d", "e")
    assert withheld(many, 3)[2:] == (
        "no verdict at batch 4: needs c",
        "no verdict at 3 more points: the report says why",
    )
    assert withheld(many)[3:] == (
        "no verdict at batch 8, batch 16: needs d",
        "no verdict at batch 32: needs e",
    )
    assert max(len(line) for line in render(summary, 80, color=False).splitlines()) <= 80


def test_a_failed_point_keeps_its_row_and_says_why() -> None:
    text = render(failing(), 160, color=False)
    assert "failed: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 48.00 GiB" in text
    assert "at line 12" not in text


def test_a_narrow_terminal_drops_columns_and_names_them() -> None:
    text = render(gpu_scan(), 80, color=False)
    assert "not shown at this width: GPU %, fill, power, J/jet" in text
    assert "verdict" in text


def test_the_command_view_has_the_sketched_order() -> None:
    text = render(command(), 120, color=False)
    assert text.startswith(
        "profharness: 20 steps captured (10 to 29), 41.2 s, 412.0 ms per step; python exited 0"
    )
    order = ["where the time went", "why idle", "top kernels", "verdict", "Answer", "Next", "Trust"]
    places = [text.index(label) for label in order]
    assert places == sorted(places)
    assert "communication 8.2 % exposed (of 19.0 %)" in text
    assert f"1{T}240 x 4.441 ms" in text


def test_severity_has_a_word_and_a_colour() -> None:
    assert "\nerror  kernels-missing at batch 256: " in render(failing(), 160, color=False)
    assert "\x1b[1;31merror" in render(failing(), 160, color=True)


def test_an_error_is_one_line_and_what_to_do() -> None:
    error = Unavailable(
        "rocprofv3 is not on this node",
        "use --profile torch; `profharness doctor --try` shows what works here",
    )
    assert render_error(error, color=False, width=60) == (
        "error: rocprofv3 is not on this node\n  use --profile torch; "
        "`profharness doctor --try` shows what works here\n"
    )


def test_markup_in_names_is_printed_as_it_is() -> None:
    assert "[bold]" in render_error(Unavailable("cannot read [bold]x[/bold]"), color=False)


def test_items_are_never_broken() -> None:
    assert wrapped_items(["compute 61.3 %", "idle 30.1 %", "copies 0.4 %"], 30) == [
        "compute 61.3 %   idle 30.1 %",
        "copies 0.4 %",
    ]


def test_what_plus_minus_means_stands_under_the_table_once() -> None:
    text = render(gpu_scan(), 140, color=False)
    assert text.count("95 % interval of the mean, with the drift of repeated points") == 1
    bare = msgspec.structs.replace(
        gpu_scan(),
        points=tuple(
            msgspec.structs.replace(point, throughput_sem=None, metrics={})
            for point in gpu_scan().points
        ),
    )
    assert "95 % interval" not in render(bare, 140, color=False)


def without_median(summary: Summary, count: int) -> Summary:
    """The first `count` points with their mean only."""
    points = tuple(
        msgspec.structs.replace(
            point,
            metrics={
                name: figure for name, figure in point.metrics.items() if name != "latency_p50"
            },
        )
        if number < count
        else point
        for number, point in enumerate(summary.points)
    )
    return msgspec.structs.replace(summary, points=points)


def test_a_mean_latency_is_never_shown_as_a_median() -> None:
    all_means = render(without_median(cpu_scan(), 99), 140, color=False).splitlines()
    assert "latency mean" in all_means[0]
    assert "p50" not in all_means[0]
    assert "mean " not in all_means[1]
    mixed = render(without_median(cpu_scan(), 1), 140, color=False).splitlines()
    assert "latency p50" in mixed[0]
    assert ("mean " in mixed[1], "mean " in mixed[2]) == (True, False)


def test_steps_and_items_per_second_of_a_command_are_printed() -> None:
    text = render(command(), 120, color=False)
    assert "2.430 ± 0.030 steps/s, slowed by the profiler" in text
    assert "622 items/s" in text


def test_a_capture_that_no_trace_states_is_named_as_asked_for() -> None:
    silent = msgspec.structs.replace(
        command(),
        passes=tuple(msgspec.structs.replace(row, captured_steps=None) for row in command().passes),
    )
    assert render(silent, 120, color=False).startswith("profharness: capture steps=10:30, 41.2 s")
    assert silent.run is not None
    default = msgspec.structs.replace(
        silent, run=msgspec.structs.replace(silent.run, capture="default")
    )
    assert render(default, 120, color=False).startswith("profharness: 41.2 s")


def test_notes_of_readers_and_findings_stay_off_the_terminal() -> None:
    scan = gpu_scan()
    problems = tuple(msgspec.structs.replace(row, severity="info") for row in scan.problems)
    text = render(msgspec.structs.replace(scan, problems=problems), 160, color=False)
    assert "rows without an end time" not in text
    assert "\ninfo" not in text


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (Figure(value=0.3634, unit="cores"), "0.4"),
        (Figure(value=0.3634, unit="cores", low=0.31, high=0.42), "0.363 ± 0.055 cores"),
    ],
)
def test_cores_are_written_as_in_the_sentences(figure: Figure, shown: str) -> None:
    summary = msgspec.structs.replace(command(), metrics={"cores_used": figure})
    lines = [
        line.split("cores used")[1].strip()
        for line in render(summary, width=100, color=False).split("\n")
        if line.strip().startswith("cores used")
    ]
    assert lines == [shown]
