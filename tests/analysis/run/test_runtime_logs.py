"""What a summary says of the logs of the HIP runtime and of MIOpen, against sums made while they
were written.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.records import Summary
from profharness.analysis.run.runtime_logs import LoggedCall, RuntimeLog, runtime_log
from profharness.analysis.summarise import summarise_trace
from profharness.report.json import metrics_json
from profharness.report.page import html
from profharness.report.tables import runtime_logs
from profharness.report.text.metrics import metrics_text
from profharness.report.text.sentences import sentences
from profharness.report.text.terminal import render
from profharness.trace.merge import merge
from profharness.trace.model import Trace
from tests.readers.logs.test_runtime_logs import line

MIOPEN = (
    "@2000000 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1",
    "@2500000 MIOpen(HIP): Info2 [FindRecordUnsafe] Looking for key 1x1",
    "@3000000 MIOpen(HIP): Info2 [SaveBinary] conv.kdb",
    "@9000000 MIOpen(HIP): Info2 [StoreRecord] 1x1",
    "@9500000 MIOpen(HIP): Info [Measure] RamDb::Prefetch time: 0.3 ms",
    "@9600000 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1",
    "@9700000 MIOpen(HIP): Command [LogCmdFusion] ./bin/MIOpenDriver conv -n 2",
)


def launch(at: int, kernel: str, groups: int, took: int, pid: int = 1) -> list[str]:
    """Four lines of one launch of `took` us; the kernel is named after 1 us, dispatched after 3."""
    who = f"[pid:{pid} tid: 0xa] "
    packet = (
        f"Dispatch Header = 0x1502 (type=2), grid=[{64 * groups}, 1, 1], workgroup=[64, 1, 1], "
        "completion_signal=0x0"
    )
    return [
        line(at, who, " hipLaunchKernel ( 0x1 ) "),
        line(at + 1, who, f"ShaderName : {kernel}"),
        line(at + 3, who, packet),
        line(at + took, who, "hipLaunchKernel: Returned hipSuccess : "),
    ]


def trace_of(folder: Path, lines: list[str], miopen: tuple[str, ...] = ()) -> Trace:
    (folder / "hip.log").write_text("\n".join(lines) + "\n")
    traces = [readers.read(folder / "hip.log")]
    if miopen:
        (folder / "miopen.log").write_text("\n".join(miopen) + "\n")
        traces.append(readers.read(folder / "miopen.log"))
    return merge(traces)


def logged(trace: Trace) -> RuntimeLog:
    found = runtime_log(trace)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(3))
def test_launches_and_calls_are_those_that_were_written(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    lines: list[str] = []
    durations: list[int] = []
    launches: dict[str, list[int]] = {}
    for number in range(200):
        kernel, groups, took = draw.choice("abc"), draw.choice((1, 7, 7, 7)), draw.randrange(4, 90)
        launches.setdefault(kernel, []).append(groups)
        durations.append(took)
        lines += launch(1000 + 100 * number, kernel, groups, took, pid=1 + number % 2)
    log = logged(trace_of(tmp_path, lines))
    assert (log.launches, log.processes) == (200, 2)
    assert {row.name: row.launches for row in log.kernels} == {
        kernel: len(groups) for kernel, groups in launches.items()
    }
    assert [row.launches for row in log.kernels] == sorted(
        map(len, launches.values()), reverse=True
    )
    for row in log.kernels:
        assert row.submitting_ns == 2000 * row.launches
        assert row.shapes == len(set(launches[row.name]))
        assert row.shape == "7 x 1 x 1 workgroups of 64 x 1 x 1"
    (call,) = log.calls
    later = sorted(durations[1:])
    assert call == LoggedCall(
        name="hipLaunchKernel",
        calls=200,
        total_ns=1000 * sum(durations),
        longest_ns=1000 * max(durations),
        first_ns=1000 * durations[0],
        later_ns=1000 * later[len(later) // 2],
    )


def test_calls_stand_by_their_time_and_slow_first_ones_are_told(tmp_path: Path) -> None:
    who = "[pid:1 tid: 0xa] "
    lines = [
        text
        for at, name, took in (
            (10, "hipMalloc", 5000),
            (6000, "hipMalloc", 30),
            (7000, "hipMalloc", 20),
            (8000, "hipInit", 40_000),
            (50_000, "hipMemcpy", 9000),
            (60_000, "hipMemcpy", 8000),
            (70_000, "hipMemcpy", 8000),
            (80_000, "hipFree", 2000),
            (90_000, "hipFree", 1),
        )
        for text in (
            line(at, who, f" {name} ( 1 ) "),
            line(at + took, who, f"{name}: Returned hipSuccess : "),
        )
    ]
    log = logged(trace_of(tmp_path, lines))
    assert [(row.name, row.total_ns) for row in log.calls] == [
        ("hipInit", 40_000_000),
        ("hipMemcpy", 25_000_000),
        ("hipMalloc", 5_050_000),
        ("hipFree", 2_001_000),
    ]
    # once is no first time, and two calls are no comparison
    assert [row.name for row in log.calls if row.slow_at_first] == ["hipMalloc"]
    lines_of = dict(runtime_logs.log_lines(log, 100))
    assert lines_of["slow at first"] == [
        "hipMalloc: 5.00 ms the first time, 25.0 µs later (median)"
    ]


def test_miopen_commands_searches_and_what_it_built(tmp_path: Path) -> None:
    log = logged(trace_of(tmp_path, launch(1000, "k", 1, 5), MIOPEN))
    assert [(row.command, row.count) for row in log.commands] == [
        ("./bin/MIOpenDriver conv -n 1", 2),
        ("./bin/MIOpenDriver conv -n 2", 1),
    ]
    assert (log.lookups, log.built) == (1, 2)
    assert log.built_until_ns == 9_000_000 - 1_000_000  # from the runtime's first call
    without = logged(trace_of(tmp_path, launch(1000, "k", 1, 5)))
    assert (without.lookups, without.built, without.built_until_ns) == (0, 0, None)
    assert "MIOpen" not in dict(runtime_logs.log_lines(without, 100))


def test_a_log_without_launch_and_call_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(line(5, "", "init") + "\n")
    assert runtime_log(readers.read(tmp_path / "a.log")) is None


def summary_of(trace: Trace) -> Summary:
    return summarise_trace(trace, "hip.log")


def test_every_form_of_the_summary_says_it(tmp_path: Path) -> None:
    lines = [text for at in (1000, 1100, 1200) for text in launch(at, "k<int>", 7, 50)]
    summary = summary_of(trace_of(tmp_path, lines, MIOPEN))
    said = sentences(summary)
    assert said.answer.startswith(
        "The log holds 3 launches of 1 kernel, 3 calls of the HIP runtime, 3 commands of MIOpen. "
        "Of its calls, hipLaunchKernel takes most of the host's time: 150 µs in 3 calls."
    )
    assert said.next.startswith(
        "MIOpen compiled or tuned kernels, last 8.00 ms after the log's begin: leave"
    )
    assert "--profile rocprofv3" in said.next
    shown = render(summary, 110, color=False)
    assert "Nothing was measured" not in shown
    for text in ("3 x   7 x 1 x 1 workgroups of 64 x 1 x 1", "3 x 50.0 µs   150 µs in all"):
        assert text in shown
        assert text in metrics_text(summary)
    assert json.loads(metrics_json(summary))["log"]["built_until_ns"] == 8_000_000
    names = [table.title for table in runtime_logs.tables(summary.log)]
    assert names == ["Launches", "Calls", "MIOpen commands"]
    page = html.render(summary)
    for text in ("Runtime log", "7 x 1 x 1 workgroups of 64 x 1 x 1", "MIOpenDriver conv -n 2"):
        assert text in page


def test_without_a_log_nothing_is_said() -> None:
    assert (runtime_logs.tables(None), runtime_logs.note(None)) == ((), "")
    assert list(runtime_logs.section(None)) == []
