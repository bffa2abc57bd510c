"""The independent count of steps, on small traces whose steps are known by hand (times in us)."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from profharness.cli import run_cli
from tests.conftest import ROOT
from tests.readers.kineto.kineto_files import document, event, kernel, launch, write

US = 1000


@pytest.fixture(scope="module")
def count() -> ModuleType:
    path = ROOT / "benchmarks/count_steps.py"
    spec = importlib.util.spec_from_file_location("count_steps", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def mark(start: int, end: int, name: str = "ProfilerStep#0", **where: Any) -> dict[str, Any]:
    return event("user_annotation", name, start, end - start, **where)


def work(number: int, called: int, start: int, end: int, **where: Any) -> list[dict[str, Any]]:
    """A kernel from start to end, with the call of 1 us that launched it."""
    return [
        launch("hipLaunchKernel", called, 1, number),
        kernel("k", start, end - start, correlation=number, **where),
    ]


def ahead(shift: int = 0) -> list[dict[str, Any]]:
    """Four steps of two kernels: the host launches in 10 us what runs for 100."""
    events = []
    for step in range(4):
        at, ran = 10 * step, shift + 100 * step
        events += [
            mark(at, at + 10),
            *work(2 * step + 1, at + 1, ran + 5, ran + 60),
            *work(2 * step + 2, at + 3, ran + 60, ran + 103),
        ]
    return events


def counted(count: ModuleType, folder: Path, events: list[dict[str, Any]]) -> Any:
    return count.figures(write(folder / "t.json", document(events)))


def test_a_step_lasts_from_end_to_end_of_what_it_launched(count, tmp_path):
    found = counted(count, tmp_path, ahead())
    assert found["rule"] == "launches"
    assert (found["steps"], found["kernels_per_step"]) == (4, 2)
    assert found["step_ns"] == 100 * US
    assert found["steps_per_second"] == 10_000  # three lengths: nothing says when the first began
    assert found["windows"] == {"0": [(5 * US, 403 * US)]}
    assert found["partition"] == {
        "window": 398 * US,
        "compute": 392 * US,
        "communication": 0,
        "copy": 0,
        "idle": 6 * US,
    }


@pytest.mark.parametrize(
    ("earlier", "begin"),
    [
        ([kernel("k", 1, 3)], 4),  # before all that is linked, until after the first mark began
        (work(99, -5, 1, 5), 5),  # launched before the first mark
        (work(99, -5, -4, -1), None),
        ([kernel("k", 210, 3)], None),  # not linked, and behind what is
    ],
)
def test_the_first_step_begins_where_earlier_work_ends(count, tmp_path, earlier, begin):
    found = counted(count, tmp_path, [*earlier, *ahead(1)])
    lengths = [] if begin is None else [104 - begin]
    assert found["windows"]["0"] == [((begin or 6) * US, 404 * US)]
    assert found["steps_per_second"] == pytest.approx(
        (3 + len(lengths)) * 1e9 / ((300 + sum(lengths)) * US)
    )


def late(*, starts: tuple[int, ...], length: int = 50) -> list[dict[str, Any]]:
    """Steps of 50 us whose only kernel ends 10 us before its mark does."""
    events = []
    for number, start in enumerate(starts):
        events += [
            mark(start, start + length),
            *work(number + 1, start + 5, start + 8, start + length - 10),
        ]
    return events


def test_where_the_host_is_late_the_first_step_begins_at_its_mark(count, tmp_path):
    found = counted(count, tmp_path, late(starts=(0, 50, 100)))
    assert found["windows"] == {"0": [(0, 140 * US)]}
    assert found["step_ns"] == 50 * US  # 40, 50, 50


def test_of_one_step_the_end_tells_whether_the_host_is_late(count, tmp_path):
    assert counted(count, tmp_path, late(starts=(7,)))["windows"] == {"0": [(7 * US, 47 * US)]}
    runs_ahead = [mark(0, 10), *work(1, 1, 5, 60)]
    found = counted(count, tmp_path, runs_ahead)
    assert found["windows"] == {"0": [(5 * US, 60 * US)]}
    assert (found["step_ns"], found["steps"]) == (None, 1)


def test_time_between_marks_that_do_not_adjoin_is_no_step_s(count, tmp_path):
    """A validation of 200 us, whose kernel ends 30 us after the next mark began."""
    validation = work(99, 120, 130, 330)
    found = counted(count, tmp_path, [*late(starts=(0, 50, 300, 350)), *validation])
    # the third step: from 330 to 340
    assert found["between_steps_ns"] == (330 - 90) * US
    assert found["windows"] == {"0": [(0, 390 * US)]}
    assert found["step_ns"] == 45 * US  # 40, 50, 10, 50
    assert found["kernels_per_step"] == 1


def test_a_step_that_launches_nothing_counts_between_others_alone(count, tmp_path):
    events = late(starts=(0, 50, 100, 150, 200))
    events = [one for one in events if one["args"].get("correlation") not in (1, 3)]
    found = counted(count, tmp_path, events)
    assert (found["steps"], found["kernels_per_step"]) == (4, 0.75)
    assert found["windows"] == {"0": [(50 * US, 240 * US)]}
    assert found["step_ns"] == 45 * US  # 40, 0, 100, 50


def test_several_devices_have_windows_of_their_own(count, tmp_path):
    events = [
        *ahead(),
        *[
            one
            for step in range(4)
            for one in work(
                50 + step, 10 * step + 5, *((10 + 100 * step, 90 + 100 * step)), device=1
            )
        ],
    ]
    found = counted(count, tmp_path, events)
    assert found["windows"] == {"0": [(5 * US, 403 * US)], "1": [(10 * US, 390 * US)]}
    assert found["partition"]["window"] == (398 + 380) * US
    assert found["kernels_per_step"] == 3
    assert found["step_ns"] == 100 * US


def test_all_kernels_of_a_graph_belong_to_the_step_that_launched_it(count, tmp_path):
    events = [
        one
        for step in range(3)
        for one in (
            mark(10 * step, 10 * step + 10),
            launch("hipGraphLaunch", 10 * step + 2, 1, step + 1),
            *(
                kernel("k", 100 * step + 10 * place + 5, 10, correlation=step + 1)
                for place in range(5)
            ),
        )
    ]
    found = counted(count, tmp_path, events)
    assert (found["kernels_per_step"], found["step_ns"]) == (5, 100 * US)


def test_other_threads_of_the_process_launch_for_it_and_other_processes_do_not(count, tmp_path):
    other = [
        launch("hipLaunchKernel", 4, 1, 90, tid=7),
        kernel("k", 55, 2, correlation=90, stream=8),
        event("cuda_runtime", "hipLaunchKernel", 4, 1, pid=5, correlation=91),
        kernel("k", 80, 2, correlation=91, stream=8),
    ]
    found = counted(count, tmp_path, [*ahead(), *other])
    assert found["kernels_per_step"] == (8 + 1) / 4


def test_a_slow_first_step_is_left_out(count, tmp_path):
    events = [mark(-900, 0), *work(77, -800, -790, -5), *late(starts=(0, 50, 100, 150, 200))]
    found = counted(count, tmp_path, events)
    assert (found["steps"], found["windows"]) == (5, {"0": [(-5 * US, 240 * US)]})


def test_marks_hold_for_trials_and_where_no_launch_is_known(count, tmp_path):
    trials = [
        one | {"name": "profharness.trial:b4:1"} if one["cat"] == "user_annotation" else one
        for one in late(starts=(0, 60))
    ]
    found = counted(count, tmp_path, trials)
    assert (found["rule"], found["windows"]) == (
        "marks",
        {"0": [(0, 50 * US), (60 * US, 110 * US)]},
    )
    unlinked = [one for one in late(starts=(0, 50)) if one["cat"] != "cuda_runtime"]
    found = counted(count, tmp_path, unlinked)
    assert (found["rule"], found["step_ns"], found["kernels_per_step"]) == ("marks", 50 * US, 1)
    assert found["windows"] == {"0": [(0, 100 * US)]}


def test_without_marks_the_window_is_all_work_and_what_has_no_time_is_in_none(count, tmp_path):
    found = counted(count, tmp_path, [kernel("k", 10, 5), kernel("k", 30, 5), kernel("k", 0, 0)])
    assert (found["rule"], found["steps"]) == ("all device work", 0)
    assert found["windows"] == {"0": [(10 * US, 35 * US)]}


def test_parts_are_disjoint_and_what_computes_comes_first(count, tmp_path):
    found = counted(
        count,
        tmp_path,
        [
            kernel("gemm", 0, 10),
            kernel("ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgs)", 5, 15, stream=8),
            kernel("void at::native::copy<AllReduceOf<float> >(int)", 40, 10),
            event("gpu_memcpy", "Memcpy HtoD", 15, 15, pid=0, tid=9, device=0, stream=9),
        ],
    )
    assert found["partition"] == {
        "window": 50 * US,
        "compute": 20 * US,
        "communication": 10 * US,
        "copy": 10 * US,
        "idle": 10 * US,
    }


def test_a_kernel_that_holds_a_whole_later_one_of_its_stream_has_no_length(count, tmp_path):
    """But for another stream, kernels of one graph, and small overlaps."""
    alike = [
        kernel("k", 100, 50, correlation=1),
        kernel("k", 110, 20, correlation=2, stream=8),
        kernel("k", 110, 20, correlation=1),
        kernel("k", 148.5, 1, correlation=3),
    ]
    assert counted(count, tmp_path, alike)["partition"]["compute"] == 50 * US
    held = kernel("k", 140, 5, correlation=4)
    assert counted(count, tmp_path, [*alike, held])["partition"] == {
        "window": 49_500,
        "compute": (20 + 5 + 1) * US,
        "communication": 0,
        "copy": 0,
        "idle": 23_500,
    }


def test_decimals_are_exact(count):
    assert count.nanoseconds("1751000000123456.789") == 1_751_000_000_123_456_789
    assert count.nanoseconds("0.0005") == 0
    assert count.nanoseconds("0.0015") == 2
    assert count.nanoseconds("none") is None


def test_what_is_no_trace_is_passed_over(count, tmp_path):
    for content in ("{}", "no JSON", json.dumps([{"cat": "Node", "ph": "X", "ts": 1, "dur": 1}])):
        assert count.figures(write(tmp_path / "t.json", content)) is None


ANSWER = """#!{python}
import json
def value(number):
    return {{"value": number}}
print(json.dumps({{
    "metrics": {{
        "step_time": value(100000.0), "steps_per_second": value(10000.0),
        "kernels_per_step": value({kernels}),
    }},
    "partition": {{
        "window_ns": 398000, "underfilled_ns": 3000, "undetermined_ns": 389000,
        "exposed_communication_ns": 0, "exposed_copy_ns": 0,
        "idle_queued_gap_ns": 5000, "idle_or_not_recorded_ns": 1000,
    }},
}}))
"""


@pytest.mark.parametrize(("kernels", "status"), [("2.0", 0), ("2.5", 1)])
def test_what_a_checkout_says_is_compared(count, tmp_path, monkeypatch, capsys, kernels, status):
    program = tmp_path / "checkout/.venv/bin/profharness"
    program.parent.mkdir(parents=True)
    program.write_text(ANSWER.format(python=sys.executable, kernels=kernels))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    trace = write(tmp_path / "t.json", document(ahead()))
    words = [
        str(trace),
        "--against",
        str(tmp_path / "checkout"),
        "--json",
        str(tmp_path / "o.json"),
    ]
    monkeypatch.setattr(sys, "argv", ["count_steps.py", *words])
    assert count.main() == status
    said = capsys.readouterr().out
    differs = "kernels_per_step: 2.0 counted, 2.5 said" if status else "| nothing"
    assert differs in said
    assert f"{1 - status} of 1 files are told as they are counted" in said
    assert json.loads((tmp_path / "o.json").read_text())["t.json"]["steps"] == 4


@dataclass
class Program:
    """Random steps of a host that is late or ahead, on some devices, with all that can be around
    them. Times are in us, and every fourth piece of work starts before what ran before has ended.
    """

    random: Random
    events: list[dict[str, Any]] = field(default_factory=list)
    free: dict[int, float] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        devices = self.random.choice((1, 1, 2, 3))
        for pid in range(100, 100 + self.random.choice((1, 1, 2))):
            self.process(pid, devices)
        return write(path, document(self.events))

    def process(self, pid: int, devices: int) -> None:
        usual, at = self.random.choice((10, 100, 1000)), 1000 + self.random.randrange(50)
        self.launches(pid, devices, (at - usual, at), self.random.choice((0, 2)), usual)
        for number in range(self.random.choice((1, 2, 3, 6, 10))):
            length = usual * self.random.choice((1, 1, 1, 3))
            self.events.append(mark(at, at + length, f"ProfilerStep#{number}", pid=pid, tid=pid))
            count = self.random.choice((1, 1, 2, 4)) if self.random.random() < 0.9 else 0
            self.launches(pid, devices, (at, at + length), count, usual)
            at += length
            gap = self.random.choice((0, 0, 0.02, 2)) * usual
            self.launches(pid, devices, (at, at + gap), int(gap > usual), usual)
            at += int(gap)

    def launches(
        self, pid: int, devices: int, when: tuple[float, float], count: int, usual: int
    ) -> None:
        for _ in range(count):
            number = len(self.events) + 1
            at = round(self.random.uniform(*when), 3)
            linked = self.random.random() < 0.9
            graph = self.random.random() < 0.2
            name = "hipGraphLaunch" if graph else "hipLaunchKernel"
            if linked:
                self.events.append(
                    launch(name, at, 0.5, number, tid=pid + number % 2) | {"pid": pid}
                )
            for _ in range(3 if graph else 1):
                self.run(at, self.random.randrange(devices), number if linked else 0, usual)

    def run(self, at: float, device: int, correlation: int, usual: int) -> None:
        free = self.free.get(device, 0.0) - self.random.choice((0, 0, 0, usual / 5))
        start = round(max(free, at + self.random.uniform(0, 2), 1.0), 3)
        length = round(self.random.uniform(0.001, usual * self.random.choice((0.2, 1.5))), 3)
        self.free[device] = max(free, start + length)
        name = self.random.choice(("gemm", "copy", "ncclDevKernel_AllReduce_Sum_f32(args)"))
        where = {"device": device, "stream": 7 + correlation % 2, "correlation": correlation}
        self.events.append(
            event("gpu_memcpy", "Memcpy HtoD", start, length, pid=device, tid=7, **where)
            if name == "copy"
            else kernel(name, start, length, **where)
        )


@pytest.mark.slow
@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_metrics_says_of_any_steps_what_is_counted(count, random):
    with TemporaryDirectory() as folder:
        path = Program(random).write(Path(folder) / "t.json")
        found = count.figures(path)
        assume(found and found["partition"]["window"] > 0)  # steps of no length have no rate
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert run_cli(["metrics", str(path), "--json"]) == 0
    assert count.differences(found, json.loads(said.getvalue())) == {}
