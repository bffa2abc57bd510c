"""The model server's parts that need neither Triton nor a framework: its plan, its place, its
records, the levels it follows.
"""

from __future__ import annotations

import errno
import fcntl
import json
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.wrappers.control import Control

pytestmark = pytest.mark.usefixtures("workloads")


def plan_of(tmp_path: Path, **fields: object) -> Any:
    from profharness_workloads.serving import plan as serving_plan

    path = tmp_path / "server.json"
    path.write_text(json.dumps({"backend": "torch", "model": "particlenet", **fields}))
    return serving_plan.read(str(path))


def test_one_model_from_the_files_own_fields(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        instances=2,
        max_batch_size=8,
        device="cuda:0,cuda:1",
        shapes={"x": [3]},
        unknown=1,
    )
    (model,) = plan.models
    assert (model.name, model.instances, model.max_batch_size, model.devices) == (
        "particlenet",
        2,
        8,
        ("cuda:0", "cuda:1"),
    )
    assert (plan.door.host, plan.door.opened, plan.records) == ("127.0.0.1", False, True)


def test_several_models_take_what_they_do_not_say_from_the_file(tmp_path: Path):
    plan = plan_of(
        tmp_path,
        instances=3,
        models=[{"name": "a"}, {"name": "b", "model": "sleep:5ms", "instances": 1}],
        host="0.0.0.0",
    )
    assert [(m.name, m.spec.model, m.instances) for m in plan.models] == [
        ("a", "particlenet", 3),
        ("b", "sleep:5ms", 1),
    ]
    assert plan.door.opened


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"instances": 0}, "instances must be"),
        ({"max_batch_size": "many"}, "max_batch_size must be"),
        ({"queue_delay_us": -1}, "queue_delay_us must be"),
        ({"name": "a/b"}, "cannot be named"),
        ({"models": [{}, {}]}, "two models"),
        ({"grpc_port": 70000}, "no port"),
        ({"tls_cert": "c"}, "certificate"),
        ({"models": 3}, "not a server's spec"),
        ({"shapes": {"x": "y"}}, "not a server's spec"),
    ],
)
def test_a_plan_that_cannot_be(tmp_path: Path, fields: dict[str, object], words: str):
    from profharness_workloads.shared import protocol

    with pytest.raises(protocol.Refusal, match=words):
        plan_of(tmp_path, **fields)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("particlenet", "particlenet"),
        ("sleep:20ms", "sleep"),
        ("/r/particlenet_AK4/1/model.onnx", "particlenet_AK4"),
        ("/models/my tagger.v2.pt", "my_tagger.v2"),
        ("1/model.onnx", "model"),
    ],
)
def test_names_by_default(model: str, name: str):
    from profharness_workloads.serving import plan as serving_plan
    from profharness_workloads.shared import protocol

    assert serving_plan.default_name(protocol.Spec("torch", model)) == name


def test_ports_are_free_and_distinct_and_a_taken_one_is_refused():
    from profharness_workloads.serving import place as serving_place
    from profharness_workloads.serving import plan as serving_plan
    from profharness_workloads.shared import protocol

    ports = serving_place.free_ports(serving_plan.Door())
    assert len(set(ports)) == 3
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        taken = sock.getsockname()[1]
        with pytest.raises(protocol.Refusal, match=f"http port {taken}.*in use") as refused:
            serving_place.free_ports(serving_plan.Door(http_port=taken))
    assert refused.value.code == protocol.USAGE
    assert serving_place.free_ports(serving_plan.Door(http_port=taken)).http == taken  # free again


def test_the_interpreters_library_is_found_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    from profharness_workloads.serving import place as serving_place
    from profharness_workloads.shared import protocol

    shared = {
        "LIBDIR": str(tmp_path),
        "INSTSONAME": "libpython3.11.so.1.0",
        "MULTIARCH": "here",
        "Py_ENABLE_SHARED": 1,
    }
    static = {
        "LIBDIR": str(tmp_path),
        "INSTSONAME": "libpython3.11.a",
        "MULTIARCH": "here",
        "LDVERSION": "3.11",
        "Py_ENABLE_SHARED": 0,
    }
    for variables in (shared, static):
        monkeypatch.setattr(serving_place.sysconfig, "get_config_var", variables.get)
        with pytest.raises(
            protocol.Refusal,
            match=f"no shared library.*Py_ENABLE_SHARED is {variables['Py_ENABLE_SHARED']}",
        ) as refused:
            serving_place.library_folder()
        assert refused.value.code == protocol.MISSING
        (tmp_path / "here").mkdir(exist_ok=True)
        (tmp_path / "here" / "libpython3.11.so.1.0").touch()
        assert serving_place.library_folder() == str(tmp_path / "here")
        (tmp_path / "here" / "libpython3.11.so.1.0").unlink()


def test_numpy_2_is_refused(monkeypatch: pytest.MonkeyPatch):
    from profharness_workloads.serving import place as serving_place
    from profharness_workloads.shared import protocol

    monkeypatch.setattr(np, "__version__", "2.1.0")
    with pytest.raises(protocol.Refusal, match=r"NumPy 2\.1\.0") as refused:
        serving_place.check_packages()
    assert refused.value.code == protocol.MISSING


def test_only_workspaces_of_ended_servers_are_swept(tmp_path: Path):
    from profharness_workloads.serving import place as serving_place

    mine = serving_place.Workspace(["m"], str(tmp_path))
    Path(mine.path).mkdir()
    dead = tmp_path / "ph-4194303-dead"
    dead.mkdir()
    (dead / "tritonserver").touch()
    (tmp_path / "ph-4194303-dead.lock").touch()
    other = tmp_path / "workspace_of_another"
    other.mkdir()
    assert serving_place.sweep(str(tmp_path)) == [str(dead)]
    assert not dead.exists()
    assert Path(mine.path).is_dir()
    assert other.is_dir()
    mine.close()
    assert {path.name for path in tmp_path.iterdir()} == {"workspace_of_another"}


def test_a_workspace_outlives_its_process_only_until_the_next_start(
    tmp_path: Path, workloads: Path
):
    from profharness_workloads.serving import place as serving_place

    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport os\n"
        "from profharness_workloads.serving import place\n"
        "w = place.Workspace(['m'], sys.argv[2])\nos.mkdir(w.path)\nw.note(sys.argv[3:])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    stubs = Path(
        f"/tmp/folder{secrets.token_hex(3)}"
    )  # as Triton names the folder of a model that it was given
    stubs.mkdir()
    kept = tmp_path / "not-a-stubs-folder"
    kept.mkdir()
    with tempfile.TemporaryDirectory(
        prefix="p"
    ) as short:  # a socket's path has about a hundred characters
        mine = Path(short)
        subprocess.run(
            [sys.executable, "-c", code, str(workloads.parent), str(mine), str(stubs), str(kept)],
            check=False,
        )
        assert len(list(mine.iterdir())) == 2
        serving_place.Workspace(["m"], str(mine)).close()
        assert list(mine.iterdir()) == []
    assert not stubs.exists()
    assert kept.is_dir()


def test_what_a_server_started_is_told_by_its_start_and_not_by_its_number(tmp_path: Path):
    """One process that the lock file marks, and one that has the number of a marked one by now."""
    from profharness_workloads.serving import place as serving_place
    from profharness_workloads.shared import leftovers

    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleep) as left, subprocess.Popen(sleep) as another:
        marks = leftovers.mark(left.pid), f"{leftovers.mark(another.pid)}9"
        (tmp_path / "ph-4194303-dead.lock").write_text("\n".join(marks))
        assert serving_place.sweep(str(tmp_path)) == [str(tmp_path / "ph-4194303-dead")]
        assert left.wait(timeout=30) == -signal.SIGKILL
        assert another.poll() is None
        another.kill()


def test_where_files_cannot_be_locked_nothing_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from profharness_workloads.serving import place as serving_place

    (tmp_path / "ph-1-aaaa").mkdir()
    (tmp_path / "ph-1-aaaa.lock").touch()

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no locks here")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    workspace = serving_place.Workspace(["m"], str(tmp_path))
    assert (tmp_path / "ph-1-aaaa").is_dir()
    workspace.close()


def test_sockets_paths_stay_within_the_kernels_limit(tmp_path: Path):
    from profharness_workloads.serving import place as serving_place
    from profharness_workloads.shared import protocol

    deep = tmp_path / ("d" * 90)
    workspace = serving_place.Workspace(["m"], str(deep))
    assert not workspace.path.startswith(str(deep))
    workspace.close()
    with pytest.raises(protocol.Refusal, match="name is too long"):
        serving_place.Workspace(["m" * 100], str(tmp_path))


@pytest.mark.parametrize(
    ("model", "seconds"), [("sleep:20ms", 0.02), ("sleep:0us", 0.0), ("sleep:1.5s", 1.5)]
)
def test_times_of_the_sleep_model(model: str, seconds: float):
    from profharness_workloads.serving import sleep_runner as serving_sleep

    assert serving_sleep.seconds(model) == pytest.approx(seconds)


@pytest.mark.parametrize("model", ["sleep", "sleep:", "sleep:20", "sleep:-1ms", "sleep:1h"])
def test_what_is_no_time(model: str):
    from profharness_workloads.serving import sleep_runner as serving_sleep
    from profharness_workloads.shared import protocol

    with pytest.raises(protocol.Refusal, match="sleep:TIME"):
        serving_sleep.seconds(model)


def test_the_sleep_model_takes_its_time_and_gives_its_input_back():
    from profharness_workloads.serving import plan as serving_plan
    from profharness_workloads.serving import sleep_runner as serving_sleep
    from profharness_workloads.shared import protocol

    runner = serving_sleep.load(
        serving_plan.Served("s", protocol.Spec("torch", "sleep:30ms", shapes={"x": (5,)})), None
    )
    assert runner.signature.inputs[0].dims == (5,)
    begun = time.perf_counter_ns()
    (given,) = runner.instance(0)([np.arange(10.0).reshape(2, 5)])
    assert time.perf_counter_ns() - begun >= 30_000_000
    assert given.tolist() == np.arange(10.0).reshape(2, 5).tolist()
    with pytest.raises(protocol.Refusal, match="--shape names z"):
        serving_sleep.load(
            serving_plan.Served("s", protocol.Spec("torch", "sleep:1ms", shapes={"z": (1,)})), None
        )


def rows(folder: Path) -> tuple[list[list[int]], list[int]]:
    """Executions and members of the one process that wrote there."""
    (executions,), (members,) = (
        list(folder.glob("executions-*.i64")),
        list(folder.glob("members-*.i64")),
    )
    return np.fromfile(executions, "<i8").reshape(-1, 8).tolist(), np.fromfile(
        members, "<i8"
    ).tolist()


def records_for(tmp_path: Path, *, on: bool = True) -> tuple[Any, Path]:
    from profharness_workloads.serving import records as serving_records
    from profharness_workloads.shared import protocol

    control = Control(tmp_path, {"backend": "torch", "model": "particlenet"})
    return serving_records.Records(
        protocol.settings_from(control.env), on=on
    ), control.run / "points" / "bare"


def run_one(records: Any, sequences: Sequence[int], model: int = 0) -> None:
    handle, start = records.begin()
    records.end(
        handle, (start, start + 5, 2 * len(sequences), len(sequences), 1, model), list(sequences)
    )


def test_executions_go_to_the_level_that_is_open_and_warm_ups_to_the_next(tmp_path: Path):
    records, points = records_for(tmp_path)
    run_one(records, [1])
    records.open("a")
    run_one(records, [2, 3])
    records.flush()
    run_one(records, [-1], model=1)
    records.close()
    run_one(records, [4])
    records.open("b")
    records.close()
    executions, members = rows(points / "a")
    assert members == [1, 2, 3, -1]
    assert [[row[0], *row[3:]] for row in executions] == [
        [0, 2, 1, 1, 0, 0],
        [1, 4, 2, 1, 1, 0],
        [2, 2, 1, 1, 3, 1],
    ]
    assert all(row[2] - row[1] == 5 for row in executions)
    executions, members = rows(points / "b")
    assert (members, executions[0][0], executions[0][6]) == ([4], 3, 0)


def test_a_level_waits_for_what_began_in_it(tmp_path: Path):
    records, points = records_for(tmp_path)
    records.open("a")
    handle, start = records.begin()
    ended = threading.Timer(0.2, lambda: records.end(handle, (start, start + 1, 1, 1, 0, 0), [7]))
    ended.start()
    records.close()
    assert rows(points / "a")[1] == [7]


def test_failed_executions_leave_no_record_and_hold_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    records, points = records_for(tmp_path)
    monkeypatch.setattr(sys.modules[type(records).__module__], "FINISHING_S", 60.0)
    records.open("a")
    records.failed(records.begin()[0])
    begun = time.monotonic()
    records.close()
    assert time.monotonic() - begun < 30
    assert not points.joinpath("a").exists() or not list(points.joinpath("a").glob("*.i64"))


def test_nothing_is_kept_where_nothing_is_asked_for(tmp_path: Path):
    records, points = records_for(tmp_path, on=False)
    run_one(records, [1])
    records.open("a")
    records.close()
    assert not list(points.rglob("*.i64"))


def test_batches_are_joined_for_the_model_and_cut_apart_for_the_requests(tmp_path: Path):
    from profharness_workloads.serving import triton_server

    records, points = records_for(tmp_path)
    seen: list[int] = []

    def call(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        seen.append(len(arrays[0]))
        return (arrays[0] + arrays[1],)

    infer = triton_server.inference(call, ["x", "y"], ["sum"], 3, 0, records)
    readonly = np.ones((2, 1))
    readonly.flags.writeable = False

    def request(n: int, sequence: int | None) -> SimpleNamespace:
        return SimpleNamespace(
            data={"x": np.full((n, 1), float(n)), "y": readonly[:1].repeat(n, axis=0)},
            parameters=None if sequence is None else {"profharness_seq": sequence},
        )

    records.open("k")
    given = infer([request(1, 10), request(3, None), request(2, 12)])
    assert [one["sum"].ravel().tolist() for one in given] == [[2.0], [4.0] * 3, [3.0] * 2]
    alone = infer(
        [
            SimpleNamespace(
                data={"x": readonly, "y": readonly}, parameters={"profharness_seq": "word"}
            )
        ]
    )
    assert alone[0]["sum"].shape == (2, 1)
    with pytest.raises(ValueError, match=r"broadcast|dimensions"):
        infer([SimpleNamespace(data={"x": np.ones((2, 3)), "y": np.ones((2, 2))}, parameters={})])
    records.close()
    executions, members = rows(points / "k")
    assert seen == [6, 2, 2]
    assert members == [10, -1, 12, -1]
    assert [row[3:6] for row in executions] == [[6, 3, 3], [2, 1, 3]]


def test_levels_are_followed_line_by_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    from profharness_workloads.serving import triton_server

    levels = triton_server.Levels(str(tmp_path))
    assert levels.news() == []
    with (tmp_path / "levels.jsonl").open("a") as file:
        file.write('{"kind": "open", "id": "a"}\n[1]\nnonsense\n{"kind": "cl')
        file.flush()
        assert levels.news() == [{"kind": "open", "id": "a"}]
        assert levels.news() == []
        file.write('ose"}\n')
    assert levels.news() == [{"kind": "close"}]
    assert "not a record" in capfd.readouterr().err


def probing(call: Any, dims: tuple[int | None, ...] = (None,), **spec: object) -> Any:
    from profharness_workloads.serving import plan as serving_plan
    from profharness_workloads.serving import runner as serving_runner
    from profharness_workloads.shared import inputs, protocol

    model = serving_plan.Served("m", protocol.Spec("torch", "m.pt", shapes={"x": (4,)}, **spec))
    return serving_runner.probed(call, (inputs.TensorSpec("x", "float32", dims),), model, ["y"])


def test_outputs_are_learned_with_their_free_dimensions():
    assert probing(lambda a: (a[0].astype("float64"),)) == (("y", "float64", (None,)),)
    assert probing(lambda a: (a[0].sum(axis=1),)) == (("y", "float32", ()),)
    assert probing(lambda a: (a[0], a[0][:, :2])) == (
        ("OUTPUT_1", "float32", (None,)),
        ("OUTPUT_2", "float32", (2,)),
    )


def test_an_output_that_does_not_follow_the_batch_is_refused():
    from profharness_workloads.shared import protocol

    with pytest.raises(protocol.Refusal, match="does not follow the batch"):
        probing(lambda a: (a[0].sum(),))
    with pytest.raises(protocol.Refusal, match="does not follow the batch"):
        probing(lambda a: (np.zeros((2, 4)),))


def test_a_missing_device_is_refused_or_replaced_and_said():
    from profharness_workloads.serving import plan as serving_plan
    from profharness_workloads.serving import runner as serving_runner
    from profharness_workloads.shared import protocol

    def choose(device: str) -> str:
        if device != "cpu":
            raise protocol.Refusal(f"there is no {device}", "look", protocol.MISSING)
        return device

    model = serving_plan.Served("m", protocol.Spec("torch", "m", device="cuda:0,cpu"))
    with pytest.raises(protocol.Refusal, match="no cuda:0") as refused:
        serving_runner.placed(model, 0, choose)
    assert (refused.value.code, "--allow-fallback" in refused.value.hint) == (
        protocol.MISSING,
        True,
    )
    assert serving_runner.placed(model, 1, choose) == (
        "cpu",
        "",
    )  # instances take the devices in turn
    device, said = serving_runner.placed(model._replace(allow_fallback=True), 2, choose)
    assert (device, said) == ("cpu", "there is no cuda:0; served from the CPU instead")


def test_a_backend_that_is_not_there_is_refused():
    from profharness_workloads.serving import plan as serving_plan
    from profharness_workloads.serving import runner as serving_runner
    from profharness_workloads.shared import protocol

    with pytest.raises(protocol.Refusal, match="--backend abacus cannot be served"):
        serving_runner.load(serving_plan.Served("m", protocol.Spec("abacus", "m")), None)


def test_the_servers_last_words_are_its_last_error(tmp_path: Path):
    from profharness_workloads.serving import start as serving_start

    log = tmp_path / "log"
    assert serving_start.last_words(str(log)) == "it wrote no log"
    log.write_text(
        'I1120 12:13:35.1 9 a.cc:1] "fine"\nE1120 12:13:39.4 9 main.cc:535] "failed to start: '
        'port taken"\nI1120 12:13:39.5 9 b.cc:2] "bye"\n'
    )
    assert serving_start.last_words(str(log)) == "failed to start: port taken"


def test_the_ready_file_is_for_its_owner(tmp_path: Path):
    from profharness_workloads.serving import triton_server

    path = tmp_path / "server-ready.json"
    triton_server.write_ready(str(path), {"token": "x"})
    assert json.loads(path.read_text()) == {"token": "x"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["server-ready.json"]
