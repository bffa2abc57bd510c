"""`metrics --critical-path` and `--what-if`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.cli import run_cli

US = 1.0


def event(category: str, name: str, start: float, dur: float, **args: int) -> dict[str, object]:
    device = category == "kernel"
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 0 if device else 7,
        "tid": 0 if device else 7,
        "ts": start,
        "dur": dur,
        "args": {**args, **({"device": 0, "stream": 0} if device else {})},
    }


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Three steps of 120 us: 10 of an operator, a kernel of 100 after 6 of latency, 2 for the
    return of the synchronisation, 6 of nothing. On the device each ends with its kernel: the first
    112 us after its mark began, the others 120 us after the one before.
    """
    events: list[dict[str, object]] = []
    for number in range(3):
        at = number * 120.0
        events += [
            event("user_annotation", f"ProfilerStep#{number}", at, 120.0),
            event("cpu_op", "aten::mm", at, 10.0),
            event("cuda_runtime", "hipLaunchKernel", at + 6, 3.0, correlation=number + 1),
            event("kernel", "gemm\u202e", at + 12, 100.0, correlation=number + 1),
            event("cuda_runtime", "hipDeviceSynchronize", at + 10, 104.0),
        ]
    path = tmp_path / "steps.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def output(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert run_cli(["metrics", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_the_path_stands_behind_the_figures(
    capsys: pytest.CaptureFixture[str], steps: Path
) -> None:
    text = output(capsys, steps, "--critical-path")
    plain = output(capsys, steps)
    each = "a step 117.3 µs on average (112.0 µs to 120.0 µs)"
    assert text.startswith(plain)
    assert text.removeprefix(plain).splitlines() == [
        f"critical path  process 7: 352.0 µs of 3 steps, {each}",
        "    85.2 %    300.0 µs  kernels",
        "     5.1 %    18.00 µs  host: operators",
        "     5.1 %    18.00 µs  launch latency",
        "     3.4 %    12.00 µs  nothing recorded",
        "     1.1 %    4.000 µs  return after waiting for the device",
        "  most of it",
        "    85.2 %    300.0 µs  kernels: gemm\\u202e of aten::mm, 3 times",
        "     5.1 %    18.00 µs  host: operators: aten::mm, 3 times",
        "     5.1 %    18.00 µs  launch latency: gemm\\u202e of aten::mm, 3 times",
        "     1.1 %    4.000 µs  return after waiting for the device: hipDeviceSynchronize, 2 times",
    ]


def test_json_holds_parts_that_sum_to_the_window(
    capsys: pytest.CaptureFixture[str], steps: Path
) -> None:
    with_path = json.loads(output(capsys, steps, "--json", "--what-if", "kernel:gemm=0.5"))
    path = with_path.pop("critical_path")
    assert with_path == json.loads(output(capsys, steps, "--json"))
    assert path["window_ns"] == 352_000 == sum(part["ns"] for part in path["segments"].values())
    [process] = path["processes"]
    assert [sum(step["segments"].values()) for step in process["steps"]] == [
        112_000,
        120_000,
        120_000,
    ]
    check, faster = process["what_if"]
    assert (check["change"], check["forecast_ns"], check["residual_ns"]) == (
        "no change",
        352_000,
        0,
    )
    assert (faster["forecast_ns"], faster["at_most_ns"]) == (None, 150_000)
    assert faster["next_limit"] == "kernel"
    assert (path["batches"], path["refused"]) == ([], [])


def test_a_what_if_is_said_by_step(capsys: pytest.CaptureFixture[str], steps: Path) -> None:
    text = output(capsys, steps, "--what-if", "kernel:gemm=0.1", "--what-if", "dataloader")
    assert text.splitlines()[-3:] == [
        "  what if  (replayed without a change: 352.0 µs, 0 s off what was measured)",
        "    kernel:gemm=0.1: step 117.3 µs, at most -76.7 % by its share of the recorded path",
        "    dataloader: step 117.3 µs: nothing on this trace is touched by it",
    ]


def test_several_files_are_ranks_with_a_path_each(
    capsys: pytest.CaptureFixture[str], steps: Path
) -> None:
    other = steps.with_name("other.json")
    other.write_text(steps.read_text().replace('"pid": 7', '"pid": 8'))
    path = json.loads(output(capsys, steps, other, "--json", "--critical-path"))["critical_path"]
    assert [process["process"] for process in path["processes"]] == ["process 7", "process 8"]
    assert path["window_ns"] == 704_000


def test_a_file_without_its_host_has_no_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "device.json"
    events = [event("kernel", "k", 1.0, 2.0, correlation=1)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert (
        output(capsys, path, "--critical-path")
        .splitlines()[-1]
        .startswith("critical path  none: no process recorded operators or host calls")
    )
    assert json.loads(output(capsys, path, "--critical-path", "--json"))["critical_path"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--what-if", "kernel"), "--what-if kernel: no such change"),
        (("--what-if", "kernel:(=1"), "no regular expression"),
        (("--critical-path", "--steps", "all"), "--steps does not go with --critical-path"),
    ],
)
def test_what_does_not_fit_is_refused(
    capsys: pytest.CaptureFixture[str], steps: Path, words: tuple[str, ...], said: str
) -> None:
    assert run_cli(["metrics", str(steps), *words]) == 2
    assert said in capsys.readouterr().err


def test_paths_of_several_files_go_on_at_the_rank_that_came_last(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Rank 1 launches its all-reduces 300 us later; its clock is 5 s ahead."""
    files = []
    for rank, (late, ahead) in enumerate(((0.0, 0.0), (300.0, 5e6))):
        events = []
        for call in range(4):
            at, id_ = ahead + call * 1000.0, call + 1
            begun = at + late + 10
            events += [
                event("cpu_op", "aten::mm", at, late + 8),
                event("cuda_runtime", "hipLaunchKernel", at + late + 4, 3.0, correlation=id_),
                event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", begun,
                      at + 400 - begun, correlation=id_),
                event("cuda_runtime", "hipDeviceSynchronize", at + late + 8, 394 - late),
            ]  # fmt: skip
        document = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
            "traceEvents": events,
        }
        files.append(tmp_path / f"rank{rank}.json")
        files[-1].write_text(json.dumps(document))
    path = json.loads(output(capsys, *files, "--json", "--critical-path"))["critical_path"]
    assert path["meetings"] == {"calls": 4, "shared_clock": False, "bound_ns": 0}
    first, second = path["processes"]
    assert sum(part["ns"] for part in first["segments"].values()) == first["window_ns"]
    assert first["places"] == {"rank 1": first["window_ns"] - 92_000, "rank 0": 92_000}
    assert second["places"] == {}
    text = output(capsys, *files, "--critical-path")
    assert "paths go on at the rank that came last to a collective: 4 calls matched" in text
    assert "it lies on rank 1" in text
