"""The workers' protocol, through real processes and a backend without a framework."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys

import pytest

from tests.wrappers.control import END, WORKLOADS, Control, kinds, point, until


def test_serves_points_in_order_and_says_hello_and_bye(toy: Control) -> None:
    toy.ask(point("toy-b1"), point("toy-b2", 2), END)
    status, err = toy.serve(toy.toy)
    assert (status, err) == (0, "")
    records = toy.records()
    assert kinds(records) == ["hello", "begin", "result", "begin", "result", "bye"]
    assert {r["v"] for r in records} == {1}
    hello, begin, result = records[:3]
    assert hello["versions"] == {"toy": "1"}
    assert hello["devices"] == [{"index": 0, "kind": "cpu", "name": "cpu"}]
    assert result["ok"] is True
    assert len(result["trials_ns"]) == len(result["starts_ns"]) == 3
    assert begin["monotonic_ns"] <= result["starts_ns"][0] <= result["end_monotonic_ns"]
    assert records[4]["items"] == 2


def test_output_of_a_point_goes_to_its_own_logs(toy: Control) -> None:
    toy.ask(point("toy-b1"), point("toy-b2"), END)
    process = toy.start(toy.toy)
    out, err = process.communicate(timeout=180)
    assert (out, err) == ("", "")
    for name in ("toy-b1", "toy-b2"):
        folder = toy.run / "points" / "bare" / name
        assert (folder / "stdout.log").read_text() == f"out of {name}\n"
        assert (folder / "stderr.log").read_text() == "native error output\n"


def test_a_second_execution_repeats_all_points_in_a_new_file(toy: Control) -> None:
    toy.ask(point("toy-b1"), point("toy-b2"), END)
    assert toy.serve(toy.toy)[0] == 0
    assert toy.serve(toy.toy)[0] == 0
    assert (
        list(toy.results("results-0-0.jsonl"))
        == list(toy.results("results-0-1.jsonl"))
        == ["toy-b1", "toy-b2"]
    )


def test_results_are_named_by_rank(toy: Control) -> None:
    toy.ask(point("toy-b1"), END)
    assert toy.serve(toy.toy, SLURM_PROCID="3")[0] == 0
    assert list(toy.results("results-3-0.jsonl")) == ["toy-b1"]


def test_a_failed_point_is_a_result_and_the_scan_goes_on(toy: Control) -> None:
    toy.ask(point("toy-b1", seed=13), point("toy-b2", 0), point("toy-b3"), END)
    assert toy.serve(toy.toy)[0] == 0
    results = toy.results()
    assert results["toy-b1"]["error"] == "MemoryError: no room for"
    assert "batch_size must be a whole number" in str(results["toy-b2"]["error"])
    assert [r["ok"] for r in results.values()] == [False, False, True]
    assert "MemoryError" in (toy.run / "points/bare/toy-b1/stderr.log").read_text()


def test_a_spoiled_device_ends_the_worker_after_the_result(toy: Control) -> None:
    toy.ask(point("toy-b1", seed=13), point("toy-b2"), END)
    assert toy.serve(toy.toy, TOY_SPOILED="1")[0] == 1
    assert kinds(toy.records()) == ["hello", "begin", "result"]


def test_a_worker_that_cannot_load_says_so(toy: Control) -> None:
    toy.ask(point("toy-b1"), END)
    status, err = toy.serve(toy.toy, TOY_BROKEN="1")
    assert status == 1
    assert "Traceback" in err
    assert toy.records() == [
        {
            "v": 1,
            "kind": "error",
            "error": "OSError: libtoy.so: cannot open shared object file",
            "exit_status": 1,
        }
    ]


def test_restart_after_a_kill_in_the_middle(toy: Control) -> None:
    toy.ask(point("toy-b1"), point("toy-b2", seed=99), point("toy-b3"), END)
    assert toy.serve(toy.toy)[0] == -signal.SIGKILL
    assert kinds(toy.records()) == ["hello", "begin", "result", "begin"]
    assert toy.serve(toy.toy, PROFHARNESS_FIRST_POINT="toy-b3")[0] == 0
    assert list(toy.results("results-0-1.jsonl")) == ["toy-b3"]


def test_isolated_points_run_alone(toy: Control) -> None:
    toy.ask(point("toy-b1"), point("toy-b2"), point("toy-b2~1"), END)
    assert toy.serve(toy.toy, PROFHARNESS_ONLY_POINT="toy-b2~1")[0] == 0
    assert list(toy.results()) == ["toy-b2~1"]


def test_points_of_other_backends_are_left_alone(toy: Control) -> None:
    toy.ask(point("torch-b1", backend="torch"), point("toy-b1", backend="toy"), END)
    assert toy.serve(toy.toy)[0] == 0
    assert list(toy.results()) == ["toy-b1"]


def test_waits_for_further_points_until_the_end(toy: Control) -> None:
    process = toy.start(toy.toy)
    toy.ask(point("toy-b1"))
    until(lambda: "toy-b1" in toy.results(), process)
    with (toy.folder / "points.jsonl").open("a") as file:  # half a line is not a point yet
        line = json.dumps(point("toy-b2")) + "\n"
        file.write(line[:20])
        file.flush()
        file.write(line[20:])
    until(lambda: "toy-b2" in toy.results(), process)
    toy.ask(END)
    assert process.wait(60) == 0
    assert kinds(toy.records())[-1] == "bye"


def test_ends_when_the_harness_is_gone(toy: Control) -> None:
    harness = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = toy.start(toy.toy, PROFHARNESS_PARENT_PID=str(harness.pid))
    toy.ask(point("toy-b1"))
    until(lambda: "toy-b1" in toy.results(), process)
    harness.kill()
    harness.wait()
    _, err = process.communicate(timeout=180)
    assert process.returncode == 128 + signal.SIGTERM
    assert f"process {harness.pid}) is gone" in err
    assert kinds(toy.records())[-1] == "bye"


def test_ends_within_a_point_when_its_starter_dies(toy: Control) -> None:
    toy.ask(point("toy-b1", seed=7, trials=100_000), END)
    code = (
        "import os, subprocess, sys\n"
        "env = {**os.environ, 'PROFHARNESS_PARENT_PID': str(os.getpid())}\n"
        "child = subprocess.Popen([sys.executable, sys.argv[1]], env=env)\n"
        "print(child.pid, flush=True)\ninput()\n"
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", code, str(toy.toy)],
        env=toy.env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert harness.stdout is not None
    assert harness.stdout.readline().strip().isdigit()
    until(lambda: "begin" in kinds(toy.records()), harness)
    harness.kill()
    harness.wait()
    until(lambda: kinds(toy.records())[-1] == "bye", None)
    assert "is gone" in str(toy.records()[-1]["reason"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(toy: Control, number: signal.Signals) -> None:
    toy.ask(point("toy-b1", seed=7, trials=100_000), END)
    process = toy.start(toy.toy)
    until(lambda: "begin" in kinds(toy.records()), process)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert toy.records()[-1]["reason"] == f"ended by {number.name}"


def test_a_damaged_points_file_is_bad_input(toy: Control) -> None:
    (toy.folder / "points.jsonl").write_text("{not json\n")
    status, err = toy.serve(toy.toy)
    assert status == 4
    assert "points.jsonl line 1" in err
    assert "points.jsonl line 1" in str(toy.records()[-1]["error"])


@pytest.mark.parametrize("text", ["[]", "{}", '{"backend": "toy"}', "no json"])
def test_a_spec_that_is_none_is_refused(toy: Control, text: str) -> None:
    toy.spec.write_text(text)
    status, err = toy.serve(toy.toy)
    assert status == 4
    assert "not a worker's spec" in err


@pytest.mark.parametrize(
    "name", sorted(str(p.relative_to(WORKLOADS)) for p in WORKLOADS.rglob("*.py"))
)
def test_sources_keep_to_python_3_8_and_never_import_the_harness(name: str) -> None:
    tree = ast.parse((WORKLOADS / name).read_text(), feature_version=(3, 8))
    imported = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {
        alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
    }
    assert not {name for name in imported if name.split(".")[0] == "profharness"}
    annotated = any(isinstance(n, ast.arg | ast.AnnAssign) and n.annotation for n in ast.walk(tree))
    assert not annotated or "__future__" in imported, "annotations of 3.9 on must stay text"
