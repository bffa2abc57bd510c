"""What perf_analyzer wrote, read exactly: recorded files, and files that are damaged or none."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.readers.logs import perf_analyzer
from profharness.trace.model import ClockDomain
from tests.steps import calls_of

RECORDED = "fixtures/models/_perf_analyzer_2.51.0"


def export(
    requests: list[dict[str, object]], mode: str = "concurrency", value: float = 4
) -> dict[str, object]:
    one = {
        "experiment": {"mode": mode, "value": value},
        "requests": requests,
        "window_boundaries": [100, 200, 350],
    }
    return {"experiments": [one], "version": "2.51.0", "service_kind": "triton", "endpoint": ""}


def test_the_recorded_export_to_the_nanosecond(shared: Path) -> None:
    path = shared / RECORDED / "profile_export_trimmed.json"
    raw = json.loads(path.read_text())["experiments"]
    trace = readers.read(path)
    assert trace.sources[0].format == "perf_analyzer"
    assert trace.sources[0].clock is ClockDomain.REALTIME
    assert trace.sources[0].tool_version == "2.51.0"
    assert trace.requests.sent_ns.tolist() == [
        one["timestamp"] for each in raw for one in each["requests"]
    ]
    assert trace.requests.done_ns.tolist() == [
        one["response_timestamps"][-1] for each in raw for one in each["requests"]
    ]
    assert trace.strings.decode(np.unique(trace.requests.point)) == [
        "concurrency 1",
        "concurrency 2",
    ]
    assert trace.marks.dur_ns.tolist() == [
        int(gap) for each in raw for gap in np.diff(each["window_boundaries"])
    ]
    assert not trace.problems


def test_every_recorded_report(shared: Path) -> None:
    folder = shared / RECORDED
    levels = perf_analyzer.read_levels(folder / "concurrency_1-8_grpc_async_p95_verbose.csv")
    assert [level.value for level in levels] == list(range(1, 9))
    third = levels[2]
    assert (third.throughput, third.queue_us, third.network_us) == (399.941, 2406, 1542)
    assert dict(third.percentiles_us) == {50: 3535, 90: 16871, 95: 23951, 99: 44815}
    # Little's law: the concurrency comes out of throughput and latency to a few per cent
    assert all(level.in_flight(1) == pytest.approx(level.value, rel=0.09) for level in levels)
    rates = perf_analyzer.read_levels(folder / "particlenet_onnx_b1_poisson_rate_10-20.csv")
    assert [(level.mode, level.value) for level in rates] == [("rate", 10), ("rate", 20)]
    unstable = perf_analyzer.read_levels(folder / "particlenet_onnx_b16_unstable_at_2.csv")
    assert perf_analyzer.missing([1, 2, 4, 8], unstable) == (2, 4, 8)


def test_device_columns(tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    path.write_text(
        "Concurrency,Inferences/Second,Client Send,p50 latency,Avg GPU Utilization,Max GPU "
        "Memory Usage\n2,10.5,3,7,GPU-1:0.5;GPU-2:0.25;,GPU-1:1024;\n"
    )
    (level,) = perf_analyzer.read_levels(path)
    assert level.metrics == (
        ("Avg GPU Utilization", (("GPU-1", 0.5), ("GPU-2", 0.25))),
        ("Max GPU Memory Usage", (("GPU-1", 1024.0),)),
    )
    assert level.latency_us is None
    assert level.in_flight(1) is None


@pytest.mark.parametrize(("header", "end"), [("", ","), (",", ","), (",", "")])
def test_a_comma_may_end_each_row(tmp_path: Path, header: str, end: str) -> None:
    path = tmp_path / "report.csv"
    path.write_text(
        f"Concurrency,Inferences/Second,p50 latency{header}\n2,10.5,7{end}\n1,6,5{end}\n"
    )
    levels = perf_analyzer.read_levels(path)
    assert [(one.value, one.throughput, one.percentiles_us) for one in levels] == [
        (1, 6, ((50, 5),)),
        (2, 10.5, ((50, 7),)),
    ]


def test_the_wrong_throughput_of_request_count_is_seen(tmp_path: Path) -> None:
    """100 requests at concurrency 4 and 11.1 ms, over a whole second: recorded with
    --request-count.
    """
    path = tmp_path / "report.csv"
    columns = (
        "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server "
        "Queue,Server Compute Input,Server Compute Infer,Server Compute Output,Client "
        "Recv"
    )
    path.write_text(f"{columns}\n4,99.9552,5,423,5081,31,5456,124,5\n")
    (level,) = perf_analyzer.read_levels(path)
    assert level.in_flight(1) == pytest.approx(1.1, abs=0.05)


def test_plain_gzipped_and_without_answers(tmp_path: Path) -> None:
    requests = [
        {
            "timestamp": 110,
            "request_inputs": {"x": [1e31]},
            "response_timestamps": [150, 160],
            "response_outputs": [],
        },
        {"timestamp": 170, "request_inputs": {}, "response_timestamps": [], "response_outputs": []},
    ]
    raw = json.dumps(export(requests, "request_rate", 20.0), indent=1).encode()
    for name, data in (("a.json", raw), ("a.json.gz", gzip.compress(raw))):
        (tmp_path / name).write_bytes(data)
        trace = readers.read(tmp_path / name)
        assert trace.requests.done_ns.tolist() == [160, 170]
        assert trace.requests.ok.tolist() == [1, 0]
        assert trace.strings.decode(trace.requests.point) == ["request rate 20"] * 2
        assert [(problem.count, problem.severity) for problem in trace.problems] == [(1, "warning")]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{\n "experiments": [ {"requests": [ {"timestamp": 5', "not a whole profile export"),
        (b'{"experiments": []}', "without requests"),
        (json.dumps(export([])).encode(), "without requests"),
    ],
)
def test_damaged_exports(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=words):
        readers.read(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a report"),
        ("a,b\n1,2\n", "not a report"),
        ("Concurrency,Inferences/Second\n1,fast\n", "line 2"),
        ("Concurrency,Inferences/Second\n1,10\n2\n", "line 3: it has more or fewer cells"),
        ("Concurrency,Inferences/Second\n1,10,3\n", "line 2: it has more or fewer cells"),
        ("Concurrency,Inferences/Second,Client Send\n1,10\n", "line 2: it has more or fewer"),
        ("Concurrency,Inferences/Second\n1,1_0\n", "line 2: '1_0' is no number"),
        ("Concurrency,Inferences/Second\n1,nan\n", "line 2: 'nan' is no number"),
        ("Concurrency,Inferences/Second,Client Send\n1,1,-4\n", "line 2: '-4' is no whole number"),
    ],
)
def test_files_that_are_no_report(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "report.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        perf_analyzer.read_levels(path)


def test_many_levels_take_steps_in_proportion_and_keep_their_points(tmp_path: Path) -> None:
    def export(levels: int) -> Path:
        one = [
            {
                "experiment": {"mode": "concurrency", "value": level + 1},
                "requests": [{"timestamp": 10 * level, "response_timestamps": [10 * level + 5]}],
                "window_boundaries": [0, 10, 30][: level % 4],
            }
            for level in range(levels)
        ]
        path = tmp_path / f"{levels}.json"
        path.write_text(json.dumps({"experiments": one}))
        return path

    few, many = (calls_of(partial(perf_analyzer.read, export(levels))) for levels in (100, 500))
    assert many - few < 400 * 20
    trace = perf_analyzer.read(export(8))
    assert [trace.strings[code] for code in trace.requests.point] == [
        f"concurrency {level + 1}" for level in range(8)
    ]
    assert [
        (trace.strings[point], trace.strings[name], start, dur)
        for point, name, start, dur in zip(
            trace.marks.point.tolist(),
            trace.marks.name.tolist(),
            trace.marks.start_ns.tolist(),
            trace.marks.dur_ns.tolist(),
            strict=True,
        )
    ] == [
        (f"concurrency {level + 1}", f"window {at}", start, dur)
        for level in range(8)
        for at, (start, dur) in enumerate([(0, 10), (10, 20)][: max(0, level % 4 - 1)], 1)
    ]
    assert {trace.strings[code] for code in trace.marks.kind} == {"phase"}


def test_more_levels_than_a_scan_has_are_refused(tmp_path: Path) -> None:
    one = '{"requests":[{"timestamp":1}]}'
    path = tmp_path / "export.json"
    path.write_text('{"experiments":[' + ",".join([one] * 1100) + "]}")
    with pytest.raises(InputError, match=r"1,100 levels of load, more than the 1,0\d\d that"):
        perf_analyzer.read(path)
