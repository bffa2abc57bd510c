from __future__ import annotations

import math

import msgspec
import pytest

from profharness.analysis.communication.records import Communication, SlowestRank
from profharness.analysis.host.line_records import LineTable
from profharness.analysis.host.records import HostPart
from profharness.analysis.records import (
    Figure,
    Partition,
    PointSummary,
    Summary,
    TraceCounts,
)
from profharness.analysis.run.checks import NOBODY
from profharness.analysis.verdict.evidence import kind_of_cause
from profharness.analysis.verdict.wording import verdict_of
from profharness.findings import finding
from profharness.report.text import command_sentences
from profharness.report.text.findings import (
    all_findings,
    finding_count,
    finding_line,
    finding_lines,
)
from profharness.report.text.labels import point_names_by_id
from profharness.report.text.limits import (
    CPU_LIMITERS,
    IDLE_CAUSES,
    LIMITERS,
    full_verdict,
    short_verdict,
)
from profharness.report.text.measured.endings import ending
from profharness.report.text.sentences import sentences
from tests.report.samples import SAMPLES, command, cpu_ops, cpu_scan, empty, failing, gpu_scan


def test_a_gpu_scan_is_answered_by_where_it_is_full_and_by_what_gpu_percent_hides() -> None:
    said = sentences(gpu_scan())
    assert said.answer == (
        "This GPU with torch is full from batch 256 (within 5 % of the best 25.2 k jets/s). "
        "onnxruntime reaches 19.8 k jets/s "
        'from batch 256. "GPU 100 %" already shows at batch 4, where 4 % of the compute units work.'
    )
    assert said.next.startswith(
        "At batch 4 you leave 89 % on the table: 67 % of the time the GPU waits for kernel "
        "launches. "
        "Try device graphs (HIP or CUDA graphs), torch.compile, or batch 256 (p50 10.62 ms)."
    )
    assert "At batch 256 the limit is bandwidth: EdgeConv gathers" in said.next
    assert said.trust.startswith(
        "3 sources aligned: torch ≤ 0.3 µs, rocprofv3 ≤ 1.9 µs (causal bound 0.8 µs), "
        "telemetry ≤ 40 µs."
    )
    assert said.trust.endswith(
        "3 findings: profiler-overhead at batch 4 (torch), clock-residual, "
        "cold-cache at batch 4 (torch)."
    )


def test_a_cpu_scan_speaks_of_cores() -> None:
    said = sentences(cpu_scan())
    assert said.answer == (
        "This CPU gives its best from batch 64 (within 5 % of the best 809 jets/s). "
        "It keeps 7.6 of 8 cores busy there."
    )
    assert "82 % of the allowed cores are idle" in said.next
    assert "Start with aten::addmm: 36.0 % of 8.40 s in operations." in said.next
    assert "GPU" not in said.answer + said.next + said.trust


def test_a_command_is_answered_by_the_partition_of_its_time() -> None:
    said = sentences(command())
    assert said.answer == (
        "The GPU computes 61.3 % of the time, waits 8.2 % for communication and is idle 30.1 "
        "%, mostly host not ready (21.7 %). "
        'The driver\'s "GPU %" said 98 meanwhile.'
    )
    assert said.next.startswith(
        "22 % of the time the GPU waits for the host to have the next work ready; "
        "without any idle time the work would run at most 1.43 times as fast."
    )
    assert "Overhead not measured (add --bare)." in said.trust


def test_errors_come_first_in_next() -> None:
    said = sentences(failing())
    assert said.next.startswith("First kernels-missing at batch 256: record again")
    assert "2 of 4 points failed." in said.trust
    assert said.answer.startswith(
        "Not full in this scan: throughput still rises at batch 256, the largest"
    )


def test_nothing_measured_says_so() -> None:
    assert sentences(empty()).answer == "Nothing was measured: no trace and no point gave figures."


def test_points_that_all_failed_give_the_first_reason() -> None:
    points = tuple(
        PointSummary(point=f"p{i}", state="failed", error="out of memory.") for i in range(3)
    )
    assert sentences(msgspec.structs.replace(empty(), points=points)).answer == (
        "No figures: all 3 points failed. The first says: out of memory."
    )


def test_a_full_curve_on_an_underfilled_device_is_not_called_full() -> None:
    scan = gpu_scan()
    points = tuple(
        msgspec.structs.replace(
            point, metrics={**point.metrics, "fill": Figure(value=0.3, unit="share")}
        )
        for point in scan.points
    )
    assert (
        "but the GPU is not full: 30 % of its compute units work"
        in sentences(msgspec.structs.replace(scan, points=points)).answer
    )


def test_full_is_not_claimed_where_fill_was_not_measured() -> None:
    scan = gpu_scan()
    points = tuple(msgspec.structs.replace(point, metrics={}) for point in scan.points)
    assert (
        "This GPU with torch gives its best from batch 256"
        in sentences(msgspec.structs.replace(scan, points=points)).answer
    )


def test_one_point_claims_nothing_about_saturation() -> None:
    point = PointSummary(point="a", batch_size=8, trials=10, throughput=100.0, throughput_sem=0.5)
    said = sentences(Summary(source="x", trace=TraceCounts(), points=(point,)))
    assert (
        said.answer == "100.00 ± 0.98 items/s at batch 8. One point says nothing about saturation."
    )


def test_unaligned_sources_are_named() -> None:
    run = gpu_scan()
    sources = (
        *run.sources[:2],
        msgspec.structs.replace(run.sources[2], bound_ns=None, residual_ns=None, clock="unknown"),
    )
    said = sentences(msgspec.structs.replace(run, sources=sources))
    assert said.trust.startswith(
        "3 sources read, 1 not aligned: torch ≤ 0.3 µs, rocprofv3 ≤ 1.9 µs (causal bound 0.8 "
        "µs), telemetry unaligned."
    )


def test_sources_without_markers_are_aligned_by_clock_readings() -> None:
    run = gpu_scan()
    sources = tuple(
        msgspec.structs.replace(source, bound_ns=None, residual_ns=None)
        if source.layer == "telemetry"
        else source
        for source in run.sources
    )
    said = sentences(msgspec.structs.replace(run, sources=sources))
    assert said.trust.startswith(
        "3 sources aligned: torch ≤ 0.3 µs, rocprofv3 ≤ 1.9 µs (causal bound 0.8 µs), "
        "telemetry by the host's clock readings."
    )


def test_a_curve_that_fell_is_not_called_rising() -> None:
    scan = failing()
    series = msgspec.structs.replace(scan.series[0], throughput=(24_000.0, 23_000.0))
    assert "still rises" not in sentences(msgspec.structs.replace(scan, series=(series,))).answer


def test_loose_traces_say_that_the_profiler_is_in_the_figures() -> None:
    loose = msgspec.structs.replace(command(), run=None, sources=())
    assert sentences(loose).trust == "The profiler's own cost is in these shares. No findings."


def test_notes_of_readers_are_no_problems() -> None:
    scan = gpu_scan()
    noted = msgspec.structs.replace(
        scan, problems=tuple(msgspec.structs.replace(row, severity="info") for row in scan.problems)
    )
    assert "problems while reading" in sentences(scan).trust
    assert "problems while reading" not in sentences(noted).trust


@pytest.mark.parametrize("name", SAMPLES)
def test_no_sentence_shows_a_hole(name: str) -> None:
    said = sentences(SAMPLES[name]())
    for text in (said.answer, said.next, said.trust):
        assert text
        assert "nan" not in text.lower().split()
        assert "None" not in text
        assert ".." not in text.replace("..8", "").replace("1..1024", "").replace("256..2048", "")
        assert "{" not in text


def test_three_findings_then_the_number_of_the_others() -> None:
    lines = finding_lines(failing())
    assert [severity for severity, _ in lines] == ["error", "error", "error", ""]
    assert lines[-1][1] == "and 5 more"
    assert (
        finding_count(failing())
        == "8 findings: kernels-missing at batch 256, point-failed (2 times), drift and 4 more"
    )


def test_series_findings_are_listed_once() -> None:
    found = [one.id for one in all_findings(failing())]
    assert found.count("peak-beyond-range") == 1
    assert sorted(found.index(name) for name in ("kernels-missing", "drift", "too-few-trials")) == [
        found.index("kernels-missing"),
        found.index("drift"),
        found.index("too-few-trials"),
    ]


def test_a_finding_of_one_of_several_series_names_it() -> None:
    scan = cpu_scan()
    falls = finding("falls-after-peak", "throughput peaks at 4 and is 4.6 % lower at 16")
    one, other = (
        msgspec.structs.replace(scan.series[0], key={"backend": name}, findings=(falls,))
        for name in ("torch", "onnxruntime")
    )
    said = [
        found.message
        for found in all_findings(msgspec.structs.replace(scan, series=(one, other)))
        if found.id == falls.id
    ]
    assert said == [f"torch: {falls.message}", f"onnxruntime: {falls.message}"]
    alone = all_findings(msgspec.structs.replace(scan, series=(one,)))
    assert [found.message for found in alone if found.id == falls.id] == [falls.message]


def test_a_finding_line_holds_figures_only_where_the_message_has_none() -> None:
    summary = failing()
    bare = finding("cpu-pressure", "other work took CPU time", pressure_percent=12.5)
    assert finding_line(point_names_by_id(summary), bare) == (
        "cpu-pressure: other work took CPU time (pressure 12.5 %); "
        "other work competed for the CPU: repeat on a quiet node"
    )
    said = finding("drift", "the points differ by 4 %", drift_share=0.04)
    assert "(drift" not in finding_line(point_names_by_id(summary), said)


@pytest.mark.parametrize("kind", [*LIMITERS, *CPU_LIMITERS, *map(kind_of_cause, IDLE_CAUSES)])
def test_every_kind_has_words(kind: str) -> None:
    window = Partition(
        window_ns=100, compute_ns=40, exposed_communication_ns=0, exposed_copy_ns=0, idle_ns=60
    )
    for partition in (window, None):
        verdict = verdict_of(kind, 0.6, "why", 2.5)
        assert short_verdict(verdict, partition)
        assert full_verdict(verdict, "") == verdict.text


def test_what_a_verdict_needs_stands_in_its_place() -> None:
    assert short_verdict(None, None, "host calls") == "no verdict"
    assert full_verdict(None, "host calls") == "no verdict: needs host calls"
    assert short_verdict(None, None) == full_verdict(None, "") == ""


def test_clauses_and_advice_are_complete() -> None:
    for limit in (*LIMITERS.values(), *CPU_LIMITERS.values(), *IDLE_CAUSES.values()):
        clause = limit.clause.format(share="60 %", device="GPU")
        assert clause.startswith("60 %")
        assert "{" not in clause
        assert limit.advice


def test_a_throughput_that_is_no_number_is_no_measurement() -> None:
    point = PointSummary(point="a", batch_size=8, throughput=math.nan)
    assert sentences(Summary(source="x", trace=TraceCounts(), points=(point,))).answer.startswith(
        "Nothing was measured"
    )


def widened(scan: Summary, half: float) -> Summary:
    """The scan with throughput intervals of plus and minus `half` of the value."""

    def wide(point: PointSummary) -> PointSummary:
        value = point.throughput or 0.0
        figure = Figure(value=value, unit="jets/s", low=value * (1 - half), high=value * (1 + half))
        return msgspec.structs.replace(point, metrics={**point.metrics, "throughput": figure})

    return msgspec.structs.replace(scan, points=tuple(map(wide, scan.points)))


def test_overlapping_intervals_prove_no_level() -> None:
    assert "no level is proven best" not in sentences(widened(cpu_scan(), 0.01)).answer
    doubtful = sentences(widened(cpu_scan(), 0.9))
    assert "The intervals overlap: no level is proven best." in doubtful.answer
    assert "on the table" not in doubtful.next
    apart = msgspec.structs.replace(widened(cpu_scan(), 0.9), series=())
    assert sentences(apart).answer.endswith("The intervals overlap: none is proven best.")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (5, "python exited 5. The GPU"),
        (137, "python was killed by signal 9 (137). The GPU"),
        (-15, "python was killed by signal 15. The GPU"),
        (255, "python exited 255. The GPU"),
        (0, "The GPU computes"),
        (None, "The GPU computes"),
    ],
)
def test_the_answer_of_a_command_leads_with_how_it_failed(status: int | None, said: str) -> None:
    one = command()
    assert one.run is not None
    assert sentences(
        msgspec.structs.replace(one, run=msgspec.structs.replace(one.run, exit_status=status))
    ).answer.startswith(said)


@pytest.mark.parametrize("status", [1, 137])
def test_a_command_that_failed_is_repaired_first(status: int) -> None:
    one = command()
    assert one.run is not None
    assert sentences(
        msgspec.structs.replace(one, run=msgspec.structs.replace(one.run, exit_status=status))
    ).next.startswith("First the command itself")


@pytest.mark.parametrize("kind", ["nothing-recorded", "hook-message"])
def test_a_command_that_died_before_anything_is_told_by_its_exception(kind: str) -> None:
    died = "the program ended by ModuleNotFoundError: No module named 'x' (train.py:3)"
    messages = {
        "nothing-recorded": f"torch recorded nothing of process 7: {died}",
        "hook-message": f"{died} (process 7)",
    }
    summary = idle_command(hotspots=(), findings=(finding(kind, messages[kind]),))
    assert summary.run is not None
    failed = msgspec.structs.replace(summary.run, exit_status=1)
    words = sentences(msgspec.structs.replace(summary, run=failed))
    assert words.answer.startswith(
        "bash exited 1 by ModuleNotFoundError: No module named 'x' (train.py:3)."
    )
    assert words.next == command_sentences.DIED
    lines = LineTable(by="line", pass_name="py-spy", rate_hz=100, threads=(), rows=())
    for seen in ({"hotspots": (cpu_ops(),)}, {"host_lines": lines}):
        recorded = msgspec.structs.replace(summary, run=failed, findings=(), **seen)
        assert sentences(recorded).next == command_sentences.FAILED


def waiting_for_a_rank(summary: Summary, **more: object) -> Summary:
    """The same with a rank that the others wait for."""
    slow = SlowestRank(
        rank="rank 3", window_ns=10**9, steps=10, waiting_share=0.4, talking_share=0.1, **more
    )
    talk = Communication(devices=(), collectives=(), slowest=slow)
    return msgspec.structs.replace(summary, communication=talk)


def test_a_device_that_waits_for_the_slowest_rank_says_for_which() -> None:
    job = waiting_for_a_rank(command(), is_largest=True, longer_kernels_ns=300_000_000)
    words = sentences(job)
    assert words.answer.startswith("The GPU computes")
    assert (
        "Rank 3 holds the others back: its kernels take 30.00 ms of each step more than theirs; "
        "they wait 40.0 % of each step (100.0 ms) for it."
    ) in words.answer
    assert words.next == (
        "Look at the device of rank 3 and at what it gets to compute: its kernels take 30.00 ms of "
        "each step more than theirs; in step with the others the job gains at most 1.67x."
    )


def test_waiting_for_a_rank_that_is_not_the_largest_part_leaves_next_alone() -> None:
    job = waiting_for_a_rank(command())
    assert "Rank 3 holds the others back: they wait 40.0 %" in sentences(job).answer
    assert sentences(job).next == sentences(command()).next


def test_on_crowded_cores_a_rank_with_a_named_line_leads() -> None:
    """What operators and collectives take says little there; a line of one rank does."""
    pressed = msgspec.structs.replace(
        idle_command(), findings=(finding("cpu-pressure", "the workload waited for a core"),)
    )
    line = HostPart(kind="python", name="ddp.py:7", ns=310_000_000, share=0.31, running=0.1)
    assert sentences(waiting_for_a_rank(pressed, meanwhile=line)).next == (
        "Look at ddp.py:7 on rank 3: 31.00 ms of each step more than on the others; in step with "
        "the others the job gains at most 1.67x."
    )
    longer = HostPart(kind="operator", name="aten::mm", ns=310_000_000, share=0.31)
    for is_largest in (False, True):  # its operators may have got fewer cores
        slower = waiting_for_a_rank(pressed, meanwhile=longer, is_largest=is_largest)
        assert sentences(slower).next == sentences(pressed).next


def test_work_of_forked_processes_is_missed_by_name() -> None:
    item = finding("fork-not-recorded", "processes 7, 8 were forked", pid=7, processes=2)
    words = sentences(idle_command(hotspots=(), findings=(item,)))
    assert words.answer.startswith(
        "The work was done in 2 forked processes, of which no operation is recorded."
    )


def idle_command(**more: object) -> Summary:
    """A command on a CPU of which telemetry alone is known."""
    one = cpu_scan()
    assert one.run is not None
    run = msgspec.structs.replace(one.run, kind="command", command=("bash", "-c", "sleep 1"))
    settings: dict[str, object] = {
        "run": run,
        "points": (),
        "series": (),
        "hotspots": (),
        "findings": (),
        "passes": (),
        "metrics": {},
    }
    return msgspec.structs.replace(one, **(settings | more))


def test_the_status_of_a_tool_that_did_not_start_the_command_is_none_of_its_own() -> None:
    run = idle_command().run
    assert run is not None
    run = msgspec.structs.replace(run, command=("python", "t.py"), exit_status=3)
    refused = finding("profiler-failed", "rocprofv3 did not start the workload: no decoder")
    assert ending(run, (refused,)) == "rocprofv3 did not start python (exit status 3)"
    assert ending(run, ()) == "python exited 3"
    shown = idle_command(run=run, findings=(refused,))
    assert sentences(shown).answer.startswith("rocprofv3 did not start python (exit status 3).")


def test_a_command_without_operations_is_not_sent_to_a_table_that_is_not_there() -> None:
    assert sentences(idle_command()).next == (
        "Which operations take the time was not recorded: add --profile torch to a command "
        "in Python."
    )
    run = idle_command().run
    assert run is not None
    attached = idle_command(run=msgspec.structs.replace(run, attached=42))
    # torch cannot attach
    assert "attach with --profile rocprofv3" in sentences(attached).next
    profiled = idle_command(passes=(msgspec.structs.replace(cpu_scan().passes[1]),))
    assert sentences(profiled).next.startswith(
        "torch recorded no operation: check that the command runs Python with it"
    )
    assert sentences(idle_command(hotspots=cpu_scan().hotspots)).next.startswith(
        "Take the operations at the top of the table first"
    )


@pytest.mark.parametrize(("used", "shown"), [(0.001683, "0.0017"), (0.3634, "0.4"), (1.0, "1.0")])
def test_cores_are_written_as_in_a_scan(used: float, shown: str) -> None:
    figures = {
        "cores_used": Figure(value=used, unit="cores"),
        "cores_allowed": Figure(value=2.0, unit="cores"),
    }
    assert (
        sentences(idle_command(metrics=figures)).answer
        == f"The command kept {shown} of 2 cores busy."
    )


def single(backend: str, kind: str = "", *layers: str, pressure: bool = False) -> Summary:
    """Two like points of one backend on a CPU, the first being recommended, so that no level wastes
    anything.
    """
    scan = cpu_scan()
    verdict = verdict_of(kind, 0.0, "") if kind else None
    points = tuple(
        msgspec.structs.replace(
            point, backend=backend, verdict=verdict, throughput=800.0, metrics={}
        )
        for point in scan.points[:2]
    )
    series = msgspec.structs.replace(
        scan.series[0],
        levels=(1.0, 2.0),
        throughput=(800.0, 800.0),
        recommended=msgspec.structs.replace(scan.series[0].recommended, at=1.0),
    )
    found = (finding("cpu-pressure", "other work took CPU time"),) if pressure else ()
    return msgspec.structs.replace(
        scan,
        points=points,
        series=(series,),
        hotspots=(),
        findings=found,
        passes=tuple(msgspec.structs.replace(scan.passes[0], layers=layers) for _ in range(1)),
    )


def test_the_layer_to_add_is_that_of_the_backend() -> None:
    assert (
        sentences(single("onnxruntime")).next
        == "Why it is not faster was not measured: add --profile onnxruntime."
    )
    assert (
        sentences(single("torch")).next
        == "Why it is not faster was not measured: add --profile torch."
    )
    assert "add --profile" not in sentences(single("torch", "", "torch")).next


def _two_backends(layers: tuple[str, ...], shown: str) -> Summary:
    """Torch and onnxruntime on a CPU, of which onnxruntime is the faster one; hotspots of the pass
    `shown`.
    """
    scan = cpu_scan()
    faster = msgspec.structs.replace(
        scan.series[0],
        key={"backend": "onnxruntime"},
        throughput=tuple(2 * rate for rate in scan.series[0].throughput),
    )
    slower = msgspec.structs.replace(scan.series[0], key={"backend": "torch"})
    points = tuple(
        msgspec.structs.replace(point, backend=backend, verdict=None)
        for backend in ("torch", "onnxruntime")
        for point in scan.points
    )
    hotspots = tuple(msgspec.structs.replace(table, pass_name=shown) for table in scan.hotspots)
    passes = tuple(
        msgspec.structs.replace(scan.passes[0], name=layer, layers=(layer,)) for layer in layers
    )
    return msgspec.structs.replace(
        scan, series=(slower, faster), points=points, hotspots=hotspots, passes=passes
    )


@pytest.mark.parametrize(
    ("layers", "shown", "said"),
    [
        (("torch", "onnxruntime"), "torch", "`profharness hotspots --pass onnxruntime` lists"),
        (("torch",), "torch", "add --profile onnxruntime."),
        (("torch", "onnxruntime"), "onnxruntime", "(pass onnxruntime)."),
    ],
)
def test_next_speaks_of_the_backend_that_the_answer_recommends(
    layers: tuple[str, ...], shown: str, said: str
) -> None:
    words = sentences(_two_backends(layers, shown))
    assert "with onnxruntime" in words.answer
    assert said in words.next
    assert "torch" not in words.next.replace("onnxruntime", "")


def test_without_hotspots_the_layer_of_the_recommended_backend_is_the_one_to_add() -> None:
    bare = msgspec.structs.replace(_two_backends((), "torch"), hotspots=())
    assert "--profile torch" not in sentences(bare).next


def test_a_process_that_waits_is_not_blamed_on_others() -> None:
    waits = verdict_of("idle-waiting", 0.7, "it ran on 0.33 of 2 allowed cores")
    said = sentences(
        idle_command(verdict=waits, findings=(finding("cpu-pressure", "other work took CPU time"),))
    ).next
    assert "find what it waits for first" in said
    assert "Other work" not in said


def test_a_scan_of_a_process_that_waits_says_so_shortly_in_its_row_and_whole_in_next() -> None:
    waits = verdict_of(
        "idle-waiting", 0.7, "for a timer: it ran on 0.3 of 2 allowed cores", opening="It waits"
    )
    scan = cpu_scan()
    series = scan.series[0]
    waiting = msgspec.structs.replace(
        scan,
        points=tuple(msgspec.structs.replace(point, verdict=waits) for point in scan.points),
        series=(msgspec.structs.replace(series, throughput=(30.0,) * len(series.throughput)),),
        hotspots=(),
        findings=(finding("cpu-pressure", "it waited for a core"),),
    )
    assert short_verdict(waits, None) == "waiting (70 % of the time)"
    said = sentences(waiting).next
    assert said.startswith("It waits: for a timer"), said
    assert "quiet node" not in said


def test_of_a_scan_among_other_work_the_quiet_node_comes_first() -> None:
    scan = cpu_scan()
    points = tuple(
        msgspec.structs.replace(
            point, verdict=None, verdict_needs="a quiet node, as other work held the cores"
        )
        for point in scan.points
    )
    pressed = msgspec.structs.replace(
        scan, points=points, findings=(finding("cpu-pressure", "other work took CPU time"),)
    )
    said = sentences(pressed).next
    assert said.index("repeat on a quiet node") < said.index("Start with aten::addmm")
    assert "quiet node" not in sentences(scan).next


def among_other_work(scan: Summary, *levels: int) -> Summary:
    """The scan with other work on its cores at these batch sizes."""
    return msgspec.structs.replace(
        scan,
        points=tuple(
            msgspec.structs.replace(
                point, verdict=None, verdict_needs="a quiet node, as other work held the cores"
            )
            if point.batch_size in levels
            else point
            for point in scan.points
        ),
        findings=(finding("cpu-pressure", "other work took CPU time"),),
    )


def test_levels_that_other_work_disturbed_are_not_told_apart() -> None:
    scan = cpu_scan()
    levels = tuple(point.batch_size or 0 for point in scan.points)
    assert sentences(among_other_work(scan, *levels)).answer == (
        "Other work held the cores, so this scan does not tell the levels apart: it measured at "
        "most 809 jets/s at batch 256. Without that work the CPU does at least as much."
    )
    said = sentences(among_other_work(scan, *levels)).next
    assert said.startswith("Other work competed for the CPU")
    assert "on the table" not in said
    own = "cores of its own, as it waited for cores although nothing else ran here"
    waits = tuple(
        msgspec.structs.replace(point, verdict=None, verdict_needs=own) for point in scan.points
    )
    assert sentences(msgspec.structs.replace(scan, points=waits)).answer.startswith(
        "This CPU gives its best from batch 64"
    )


def test_a_best_level_names_the_levels_that_other_work_disturbed() -> None:
    scan = cpu_scan()
    first = scan.points[0].batch_size or 0
    said = sentences(among_other_work(scan, first)).answer
    assert said.startswith("This CPU gives its best from batch 64")
    assert said.endswith(
        f"Other work held the cores at batch {first}, which may do better without it."
    )


def test_the_cores_stand_beside_the_series_that_they_are_of() -> None:
    scan = cpu_scan()
    other = msgspec.structs.replace(
        scan.series[0],
        key={"backend": "slower"},
        throughput=tuple(rate / 2 for rate in scan.series[0].throughput),
    )
    said = sentences(msgspec.structs.replace(scan, series=(scan.series[0], other))).answer
    assert said.index("cores busy there") < said.index("slower reaches")


def test_the_pass_of_the_hotspots_is_named_among_several() -> None:
    scan = cpu_scan()
    twice = tuple(
        msgspec.structs.replace(scan.passes[0], layers=(layer,))
        for layer in ("torch", "onnxruntime")
    )
    tables = tuple(msgspec.structs.replace(table, pass_name="torch") for table in scan.hotspots)
    assert sentences(msgspec.structs.replace(scan, passes=twice, hotspots=tables)).next.endswith(
        "in operations (pass torch)."
    )


def test_nothing_stands_out_is_not_said_of_a_run_under_pressure() -> None:
    assert sentences(single("torch", "none")).next.startswith("Nothing stands out")
    for summary in (
        single("torch", "none", pressure=True),
        idle_command(findings=(finding("cpu-pressure", "other work took CPU time"),)),
    ):
        assert sentences(summary).next == (
            "Other work competed for the CPU, so what limits this run cannot be told: "
            "repeat on a quiet node."
        )


def test_what_nothing_else_took_is_not_blamed_on_other_work() -> None:
    alone = msgspec.structs.replace(finding("cpu-pressure", "waited"), advice=NOBODY)
    said = sentences(msgspec.structs.replace(single("torch", "none"), findings=(alone,))).next
    assert said.startswith("The workload waited for cores although nothing else ran here")


def test_notes_among_the_findings_are_counted_behind_the_others() -> None:
    notes = tuple(finding("too-few-trials", "10 trials", point=f"p{number}") for number in range(4))
    warned = msgspec.structs.replace(
        empty(), findings=(*notes, finding("drift", "the repeated points differ"))
    )
    assert [(severity, line.partition(":")[0]) for severity, line in finding_lines(warned)] == [
        ("warning", "drift"),
        ("", "and 4 more"),
    ]
    assert finding_lines(msgspec.structs.replace(empty(), findings=notes)) == ()
    assert finding_count(warned).startswith("5 findings: drift, too-few-trials (4 times)")


def test_an_incomplete_run_says_so_before_anything_else() -> None:
    whole = cpu_scan()
    found = finding("run-incomplete", "the run was interrupted: the torch pass is missing")
    cut = msgspec.structs.replace(whole, findings=(found, *whole.findings))
    assert sentences(cut).answer.startswith("The run was interrupted: the torch pass is missing. ")
    assert sentences(cut).answer.endswith(sentences(whole).answer)


def test_what_is_missing_of_a_run_is_said_once_as_answer_and_once_as_next_step() -> None:
    missing = finding("run-incomplete", "the run was interrupted: the torch pass is missing")
    warned = msgspec.structs.replace(
        cpu_scan(), findings=(missing, finding("cpu-pressure", "other work took CPU time"))
    )
    said = sentences(warned)
    assert said.answer.startswith("The run was interrupted: the torch pass is missing.")
    assert said.next.startswith("First run-incomplete: run it again")
    assert [line.partition(":")[0] for _, line in finding_lines(warned)] == ["cpu-pressure"]


def test_the_only_point_with_figures_is_not_called_the_best() -> None:
    scan = cpu_scan()
    failed = tuple(
        msgspec.structs.replace(point, state="failed", error="x", throughput=None, metrics={})
        for point in scan.points[1:3]
    )
    said = sentences(
        msgspec.structs.replace(scan, points=(scan.points[0], *failed), series=())
    ).answer
    assert said.startswith("Of 3 points only batch 1 has figures: ")
    assert "best" not in said


def test_an_answer_names_ten_other_series_and_counts_the_rest() -> None:
    scan = gpu_scan()
    best = max(scan.series, key=lambda one: max(one.throughput))
    others = tuple(
        msgspec.structs.replace(
            best,
            key={"backend": f"model{place}"},
            throughput=tuple(rate / place for rate in best.throughput),
        )
        for place in range(2, 15)
    )
    said = sentences(msgspec.structs.replace(scan, series=(best, *reversed(others)))).answer
    named = [place for place in range(2, 15) if f"model{place} reaches" in said]
    assert named == list(range(2, 12))
    assert said.index("model2 reaches") < said.index("model11 reaches")
    assert "and 3 further series less." in said
