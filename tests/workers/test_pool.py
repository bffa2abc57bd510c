from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from profharness.errors import InputError, ProfharnessError, Unavailable, UsageError
from profharness.launchers.local import LocalLauncher
from profharness.rundir.paths import RunDir
from profharness.scans.contract import Point, PointOutput, WorkloadSpec
from profharness.workers.pool import Events, WorkerSetup, serve
from profharness.workers.protocol import ResultsTail, write_points

FAKES = Path(__file__).parent.parent / "fakes"


def points(*does: str) -> list[Point]:
    return [
        Point(id=f"p{n}", backend="torch", batch_size=4, params={"backend": "torch", "do": do})
        for n, do in enumerate(does)
    ]


def serve_all(
    tmp_path: Path,
    todo: list[Point],
    settings: Mapping[str, object] | None = None,
    *,
    isolate: bool = False,
) -> tuple[dict[str, PointOutput], int]:
    run = RunDir.create(tmp_path / "run")
    folder = run.control_dir("bare")
    write_points(folder / "points.jsonl", ((p.key, p.params) for p in todo), complete=True)
    setup = WorkerSetup(
        run=run,
        pass_name="bare",
        python=sys.executable,
        wrappers=FAKES,
        backend="torch",
        cache_dir=tmp_path / "cache",
        workload=WorkloadSpec(
            "workloads/stand_in_worker.py", {"backend": "torch", **(settings or {})}
        ),
        wrap=lambda command: command,
        isolate=isolate,
    )
    outputs: dict[str, PointOutput] = {}

    def take(point: Point, output: PointOutput) -> None:
        assert point.key not in outputs, "a point is reported once"
        outputs[point.key] = output

    outcomes = serve(setup, todo, LocalLauncher(), Events(lambda _: None, lambda: None, take))
    return outputs, len(outcomes)


def test_one_worker_serves_all_points(tmp_path: Path) -> None:
    outputs, executions = serve_all(tmp_path, points("ok", "ok", "ok"))
    assert executions == 1
    assert [o.ok for o in outputs.values()] == [True] * 3
    assert outputs["p0"].trials_ns == (100, 110)
    assert outputs["p0"].warmup_starts_ns == (300,)
    assert outputs["p0"].begin_ns is not None
    assert outputs["p0"].host == "h"


def test_a_failing_point_costs_itself_only(tmp_path: Path) -> None:
    outputs, executions = serve_all(tmp_path, points("ok", "fail", "ok"))
    assert executions == 1
    assert [o.ok for o in outputs.values()] == [True, False, True]
    assert outputs["p1"].error == "RuntimeError: out of memory"


@pytest.mark.parametrize(
    "does",
    [("die", "ok", "ok"), ("ok", "die", "ok"), ("ok", "ok", "die"), ("die", "die", "ok"), ("die",)],
)
def test_a_dying_worker_costs_one_point(tmp_path: Path, does: tuple[str, ...]) -> None:
    outputs, executions = serve_all(tmp_path, points(*does))
    assert [outputs[f"p{n}"].ok for n in range(len(does))] == [do == "ok" for do in does]
    died = next(output for output in outputs.values() if not output.ok)
    assert died.error == "the worker was killed by SIGKILL: HSA_STATUS_ERROR_OUT_OF_RESOURCES"
    assert executions == does.count("die") + (does[-1] == "ok")


def test_isolate_starts_one_process_per_point(tmp_path: Path) -> None:
    outputs, executions = serve_all(tmp_path, points("ok", "die", "ok"), isolate=True)
    assert executions == 3
    assert [o.ok for o in outputs.values()] == [True, False, True]


@pytest.mark.parametrize(("code", "kind"), [(2, UsageError), (3, Unavailable), (4, InputError)])
@pytest.mark.parametrize("tool_status", [None, 1])
def test_a_worker_that_refuses_ends_the_pass_with_its_own_words(
    tmp_path: Path, code: int, kind: type[ProfharnessError], tool_status: int | None
) -> None:
    """The words and the code are the worker's, also where a tool around it changed its exit
    status.
    """
    settings = {"refuse": code} | ({"tool_status": tool_status} if tool_status else {})
    with pytest.raises(kind) as caught:
        serve_all(tmp_path, points("ok", "ok"), settings)
    assert (caught.value.message, caught.value.hint) == (
        "no ROCm device is visible to torch",
        "use --device cpu",
    )
    assert caught.value.exit_code == code


def test_a_worker_that_cannot_start_fails_every_point_once(tmp_path: Path) -> None:
    outputs, executions = serve_all(tmp_path, points("ok", "ok"), {"broken": True})
    assert executions == 1
    assert all(
        "libfoo.so" in output.error
        and "before its first point" in output.error
        and not output.begun
        for output in outputs.values()
    )


def test_results_are_followed_line_by_line_and_foreign_lines_refused(tmp_path: Path) -> None:
    tail = ResultsTail(tmp_path)
    path = tmp_path / "results-0-0.jsonl"
    path.write_bytes(b'{"v":1,"kind":"begin","id":"a","monotonic_ns":5}\n{"v":1,"kind":"res')
    assert [line.kind for line in tail.poll()] == ["begin"]
    assert tail.poll() == []
    with path.open("ab") as file:
        file.write(b'ult","id":"a","ok":true}\n')
    assert [line.kind for line in tail.poll()] == ["result"]
    with path.open("ab") as file:
        file.write(b"Traceback\n")
    with pytest.raises(InputError, match="outside the protocol"):
        tail.poll()


@pytest.mark.parametrize(
    ("hopeless", "executions", "reported"), [(True, 1, ["p0"]), (False, 2, ["p0", "p1", "p2"])]
)
def test_a_hopeless_pass_is_given_up_after_the_execution_that_ended_early(
    tmp_path: Path, hopeless: bool, executions: int, reported: list[str]
) -> None:
    run = RunDir.create(tmp_path / "run")
    todo = points("ok", "die", "ok")
    write_points(
        run.control_dir("bare") / "points.jsonl", ((p.key, p.params) for p in todo), complete=True
    )
    setup = WorkerSetup(
        run=run,
        pass_name="bare",
        python=sys.executable,
        wrappers=FAKES,
        backend="torch",
        cache_dir=tmp_path / "cache",
        workload=WorkloadSpec("workloads/stand_in_worker.py", {"backend": "torch"}),
        wrap=lambda command: command,
        hopeless=lambda: hopeless,
    )
    taken: list[str] = []
    outcomes = serve(
        setup,
        todo,
        LocalLauncher(),
        Events(lambda _: None, lambda: None, lambda point, _: taken.append(point.key)),
    )
    assert (len(outcomes), taken) == (executions, reported)
