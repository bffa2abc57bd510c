"""Figures as `profharness metrics` prints them: what repeats is said once."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import Figure, PointSummary, ProblemRow, Summary, TraceCounts
from profharness.report.text.measured.blocks import Block, block_lines
from profharness.report.text.measured.lacking import lacking_lines, problem_lines
from profharness.report.text.metrics import MetricsView, metrics_text
from tests.report.samples import cpu_scan, gpu_scan


def share(value: float, note: str = "", source: str = "kineto: 1 step") -> Figure:
    return Figure(value=value, unit="share", source=source, note=note)


def text(*blocks: Block, keys: bool = False, width: int | None = None) -> list[str]:
    return list(block_lines(blocks, keys=keys, width=width))


def test_a_figure_has_its_title_its_share_in_per_cent_and_its_meaning() -> None:
    (head, line) = text(Block("metrics", {"busy": share(0.931)}))
    assert head == "metrics:  from kineto: 1 step"
    assert line == "  busy  93.1 %  share of the window in which at least one kernel ran"


def test_the_name_in_json_is_shown_where_it_is_asked_for() -> None:
    figures = {"busy_any": share(0.5), "idle": share(0.5)}
    assert not any("busy_any" in line for line in text(Block("metrics", figures)))
    assert "  busy with copies  busy_any  50.0 %" in text(Block("metrics", figures), keys=True)[1]


def test_a_meaning_stands_where_the_figure_stands_first() -> None:
    blocks = [Block(f"point {name}", {"busy": share(0.5)}) for name in "ab"]
    assert sum("at least one kernel ran" in line for line in text(*blocks)) == 1


def test_a_remark_of_many_figures_is_said_once() -> None:
    inflated = "inflated by the profiler"
    names = ("busy", "busy_any", "compute", "idle")
    lines = text(Block("metrics", {name: share(0.5, inflated) for name in names}))
    assert sum(inflated in line for line in lines) == 1
    assert [line.endswith("[1]") for line in lines[1:5]] == [True] * 4
    assert lines[5:] == ["notes:", f"  [1]  {inflated}"]


def test_a_remark_of_its_own_stays_with_its_figure() -> None:
    lines = text(Block("metrics", {"busy": share(0.5, "of one device; at most")}))
    assert lines[1].endswith("kernel ran; of one device; at most")
    assert len(lines) == 2


def test_a_source_is_told_above_the_block_and_where_it_differs() -> None:
    figures = {"busy": share(0.5), "idle": share(0.5), "fill": share(0.1, source="telemetry")}
    lines = text(Block("metrics", figures))
    assert lines[0] == "metrics:  from kineto: 1 step, unless a line says otherwise"
    assert [line.endswith("from telemetry") for line in lines[1:]] == [False, False, True]


def test_long_remarks_are_broken_at_the_width_of_a_terminal() -> None:
    lines = text(Block("metrics", {"busy": share(0.5, "word " * 40)}), width=80)
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


def lacking(metrics: dict[str, str], *points: dict[str, str | None]) -> list[str]:
    def figures(needs: dict[str, str | None]) -> dict[str, Figure]:
        return {
            name: Figure(value=1.0 if words is None else None, unit="ms", needs=words or "")
            for name, words in needs.items()
        }

    return list(
        lacking_lines(
            Summary(
                source="run",
                trace=TraceCounts(kernels=1),
                metrics=figures({**metrics}),
                points=tuple(
                    PointSummary(point=f"b{number}", metrics=figures(needs))
                    for number, needs in enumerate(points)
                ),
            )
        )
    )


def test_what_one_thing_would_give_stands_in_one_line() -> None:
    assert lacking({"fill": "workgroups", "mfu": "work", "fill_busy": "workgroups"}) == [
        "not measured:",
        "  fill; fill while busy: needs workgroups",
        "  MFU: needs work",
    ]


def test_of_many_figures_the_first_are_named_and_all_where_keys_are_asked_for() -> None:
    names = [f"figure{number}" for number in range(47)]
    few, many = (dict.fromkeys(names[:count], "workgroups") for count in (6, 47))
    assert lacking(few) == ["not measured:", f"  {'; '.join(names[:6])}: needs workgroups"]
    first = "; ".join(names[:4])
    assert lacking(many) == [
        "not measured (--keys lists all):",
        f"  47 figures, such as {first}: needs workgroups",
    ]
    metrics = {name: Figure(value=None, unit="ms", needs="workgroups") for name in names}
    summary = Summary(source="run", trace=TraceCounts(kernels=1), metrics=metrics)
    assert list(lacking_lines(summary, keys=True)) == [
        "not measured:",
        f"  {'; '.join(names)}: needs workgroups",
    ]


def test_numbers_of_trials_and_counters_are_one_thing_to_do_each() -> None:
    lines = lacking(
        {
            "latency_p99": "more trials (at least 1000)",
            "latency_p99_9": "more trials (at least 10000)",
            "fabric_bytes": "counters (--pmc FETCH_SIZE WRITE_SIZE)",
            "hfu": "a counter pass (--pmc MfmaFlops) beside one without counters",
            "l2_hit": "hardware counters: --profile rocprofv3 --pmc NAMES, or rocprof-compute",
        }
    )
    assert lines[1:] == [
        "  latency p99 (at least 1000); latency p99.9 (at least 10000): needs more trials",
        (
            "  bytes to the fabric (FETCH_SIZE WRITE_SIZE); HFU (MfmaFlops); L2 hits: "
            "needs hardware counters: --profile rocprofv3 --pmc NAMES, or rocprof-compute"
        ),
    ]


def test_what_else_gives_some_figures_is_said_behind_the_thing_to_do() -> None:
    shapes = "operators with shapes (--profile torch)"
    lines = lacking(
        {
            "mfu": f"{shapes}, or --flops-per-item",
            "bandwidth_share": f"{shapes}, or counters (--pmc)",
            "mbu": shapes,
        }
    )
    assert lines[1:] == [
        (
            f"  MFU; memory bandwidth; least memory bandwidth: needs {shapes}; "
            "for some --flops-per-item or counters (--pmc) will do"
        )
    ]


def test_on_a_device_of_nvidia_no_tool_of_amd_is_a_thing_to_do() -> None:
    summary = gpu_scan()
    assert summary.run is not None
    needs = "allocations of the runtime: --profile rocprofv3 --memory-allocation-trace"
    summary.metrics["hsa_allocated_peak"] = Figure(value=None, unit="B", needs=needs)
    assert any(needs in line for line in lacking_lines(summary))
    run = msgspec.structs.replace(summary.run, device="NVIDIA A100-SXM4-40GB")
    lines = list(lacking_lines(msgspec.structs.replace(summary, run=run)))
    assert not any(needs in line for line in lines)
    assert lines[-1].endswith("figures that only tools of AMD give (an NVIDIA device)")


def test_points_that_lack_what_others_have_are_counted() -> None:
    lines = lacking({}, {"mfu": None}, {"mfu": "work"}, {"mfu": "work"})
    assert lines[1:] == ["  MFU (at 2 of 3 points): needs work"]


def test_what_a_node_without_a_device_cannot_have_is_no_thing_to_do() -> None:
    summary = cpu_scan()
    needs = "hardware counters: --profile rocprofv3 --pmc NAMES, or rocprof-compute"
    summary.metrics["l2_hit"] = Figure(value=None, unit="share", needs=needs)
    lines = list(lacking_lines(summary))
    assert not any("--pmc" in line for line in lines)
    assert lines[-1].endswith("figures that only device work gives (no device kernels: a CPU run)")


def unsampled(metric: str, why: str) -> ProblemRow:
    message = f"{metric} was not sampled: {why}"
    return ProblemRow(source="telemetry/n.bin", severity="info", count=1, message=message)


def test_meters_that_the_node_does_not_have_are_one_line() -> None:
    cray = "/sys/cray/pm_counters is absent: only HPE Cray EX nodes meter themselves"
    rows = [unsampled(name, cray) for name in ("power_node", "power_node_limit")]
    rows += [
        unsampled("rdma_sent", "/x names no port: there is no RDMA adapter here"),
        unsampled("power_cpu", "/sys/energy_uj cannot be read (Permission denied)"),
        ProblemRow(source="a", severity="info", count=2, message="another: was dropped"),
    ]
    others, lines = problem_lines(rows)
    assert [row.source for row in others] == ["a"]
    assert lines == [
        (
            "not sampled: power of the node; power limit of the node; RDMA sent: "
            "this node has no such meter or limit"
        ),
        "not sampled: power of the CPUs: /sys/energy_uj cannot be read (Permission denied)",
    ]


def test_the_whole_text_says_no_remark_twenty_times() -> None:
    for summary in (gpu_scan(), cpu_scan()):
        shown = metrics_text(summary)
        assert shown.count("inflated by the profiler") <= 1
        assert "throughput " in shown
        assert "steps_per_second" not in shown
    assert " throughput  " in metrics_text(gpu_scan(), MetricsView(keys=True))
