"""The deepsparse worker: the engine on a copy with fixed shapes, what an interpreter lacks, and
onnxruntime in its place. The engine is a stand-in, and at the end the real one where it is named.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs, small_onnx
from tests.deepsparse_python import INTERPRETER, needs_deepsparse
from tests.wrappers.control import END, WORKLOADS, Control, point

needs.packages("onnxruntime", "onnx")

STAND_IN = Path(__file__).parents[1] / "fakes" / "stand_in_deepsparse"
WORKER = "batch/deepsparse_worker.py"
CPU = min(os.sched_getaffinity(0))


class Deepsparse(Control):
    """A worker on a small model, with the stand-in unless said otherwise."""

    def __init__(self, root: Path, *, engine: bool = True, **spec: object) -> None:
        self.model = small_onnx.two_inputs(root / "two.onnx")
        self.log = root / "engines.jsonl"
        named = {"backend": "deepsparse", "model": str(self.model), "shapes": {"x": [4, 3]}}
        super().__init__(root, {**named, "device": "cpu", "threads": 2, **spec})
        self.env["STAND_IN_DEEPSPARSE_LOG"] = str(self.log)
        if engine:
            self.env["PYTHONPATH"] = str(STAND_IN)

    def one(self, *asked: dict[str, object], **env: str) -> dict[str, object]:
        """The result of the first point."""
        self.ask(*asked or (point("b2", 2),), END)
        status, err = self.serve(WORKER, **env)
        assert status == 0, err
        return next(iter(self.results().values()))

    def refused(self, **env: str) -> dict[str, object]:
        self.ask(point("b2", 2), END)
        status, _ = self.serve(WORKER, **env)
        error = self.records()[-1]
        assert status == error["exit_status"]
        return error


def test_the_engine_gets_fixed_shapes_on_a_copy_that_is_gone_afterwards(tmp_path: Path) -> None:
    worker = Deepsparse(tmp_path)
    before = worker.model.read_bytes()
    result = worker.one(point("b2", 2), point("b8", 8))
    assert result["ok"], result["error"]
    assert len(result["trials_ns"]) == 3
    assert result["items"] == 2
    assert result["compile_ns"] > 0
    assert result["notes"]["supported_operators"] == "0.8047"
    assert result["notes"]["instructions"] == "avx512_vnni"
    assert "fallback" not in result["notes"]
    made = [json.loads(line) for line in worker.log.read_text().splitlines()]
    assert [(one["batch"], one["cores"], one["shapes"]) for one in made] == [
        (size, 2, [[size, 4, 3], [size, 3]]) for size in (2, 8)
    ]
    assert worker.model.read_bytes() == before
    for one in made:
        assert Path(one["model"]).name == "two.onnx"
        assert tmp_path / "run" in Path(one["model"]).parents
        assert not Path(one["model"]).parent.exists()


def test_weights_beside_the_model_are_copied_too(tmp_path: Path) -> None:
    import onnx

    worker = Deepsparse(tmp_path)
    model = onnx.load(str(worker.model))
    onnx.save(
        model, str(worker.model), save_as_external_data=True, location="w.bin", size_threshold=0
    )
    assert (tmp_path / "w.bin").is_file()
    result = worker.one()  # the stand-in loads them from beside its copy
    assert result["ok"], result["error"]


def test_shapes_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    worker = Deepsparse(tmp_path, shapes={"[0]": [6, 3], "[1]": [3]})
    assert worker.one()["ok"]
    assert json.loads(worker.log.read_text())["shapes"] == [[2, 6, 3], [2, 3]]


def test_a_wrong_number_of_shapes_names_the_inputs(tmp_path: Path) -> None:
    told = Deepsparse(tmp_path, shapes={"[0]": [6, 3], "[1]": [3], "[2]": [1]}).refused()
    assert told["error"] == "--shape gives 3 shapes, and the model has 2 inputs"
    assert "x [?, 3] float32; mask [3] float32" in told["hint"]


@pytest.mark.parametrize(
    ("engine", "env", "said"),
    [
        (False, {}, "has no deepsparse" if sys.version_info < (3, 12) else "3.12 or newer"),
        (True, {"STAND_IN_DEEPSPARSE_EMPTY": "1"}, "an empty package: 1.8.0 is the last one"),
        (
            True,
            {"STAND_IN_DEEPSPARSE_REFUSES": "Unable to determine instruction set 'unknown'"},
            "deepsparse refuses this CPU: Unable to determine instruction set 'unknown'",
        ),
    ],
)
def test_a_named_interpreter_that_cannot_serve_says_why(
    tmp_path: Path, engine: bool, env: dict[str, str], said: str
) -> None:
    worker = Deepsparse(tmp_path, engine=engine, python=sys.executable)
    told = worker.refused(**env)
    assert said in told["error"]
    assert told["exit_status"] == 3
    assert "--python" in told["hint"]


def test_the_empty_release_is_known_by_its_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "site" / "deepsparse-1.9.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: deepsparse\nVersion: 1.9.0\n")
    worker = Deepsparse(tmp_path, engine=False, python=sys.executable)
    told = worker.refused(PYTHONPATH=str(tmp_path / "site"))
    assert f"{sys.executable} has deepsparse 1.9.0, which is an empty package" in told["error"]


def test_an_interpreter_without_anything_hears_it(tmp_path: Path) -> None:
    """Not even NumPy is needed to say that the engine is missing."""
    worker = Deepsparse(tmp_path, engine=False, python=sys.executable)
    worker.ask(point("b2", 2), END)
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(WORKLOADS / WORKER)],
        env=worker.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "deepsparse" in done.stderr
    assert "numpy" not in done.stderr


@pytest.mark.parametrize(
    ("spec", "env", "said"),
    [
        ({}, {}, "no interpreter with deepsparse was named by --python; onnxruntime "),
        (
            {"python": sys.executable, "allow_fallback": True},
            {"PYTHONPATH": str(STAND_IN), "STAND_IN_DEEPSPARSE_REFUSES": "no"},
            "deepsparse refuses this CPU: no; onnxruntime ",
        ),
    ],
)
def test_onnxruntime_serves_in_its_place_and_says_so(
    tmp_path: Path, spec: dict[str, object], env: dict[str, str], said: str
) -> None:
    worker = Deepsparse(tmp_path, engine=False, **spec)
    result = worker.one(**env)
    assert result["ok"], result["error"]
    assert result["notes"]["fallback"].startswith(said)
    assert "supported_operators" not in result["notes"]


def test_a_device_and_a_file_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert "runs on CPUs alone" in Deepsparse(tmp_path / "a", device="cuda").refused()["error"]
    (tmp_path / "b").mkdir()
    worker = Deepsparse(tmp_path / "b")
    worker.model.write_bytes(b"no model")
    assert "not a readable ONNX file" in worker.refused()["error"]


def test_a_pinned_process_runs_the_engine_with_its_own_cores(tmp_path: Path) -> None:
    worker = Deepsparse(
        tmp_path,
        threads=None,
        places=[{"cpus": [CPU]}],
        pin="core",
        memory="bind",
    )
    worker.ask(point("p", 2, processes=1, seconds=0.2, warmup_seconds=0.0), END)
    status, err = worker.serve("pinned/worker.py")
    assert status == 0, err
    result = worker.results()["p"]
    assert result["ok"], result["error"]
    assert result["streams"][0]["batches"] > 1
    assert result["notes"]["supported_operators"] == "0.8047"
    assert result["notes"]["engine_cores"] == "1"
    assert json.loads(worker.log.read_text())["cores"] == 1


@needs_deepsparse
@pytest.mark.slow
@pytest.mark.parametrize("int8", [False, True])
def test_the_real_engine_runs_sparse_models(tmp_path: Path, int8: bool) -> None:
    model = small_onnx.sparse_layers(tmp_path / "sparse.onnx", int8=int8)
    before = model.read_bytes()
    control = Control(
        tmp_path,
        {
            "backend": "deepsparse",
            "model": str(model),
            "device": "cpu",
            "python": INTERPRETER,
            "threads": 1,
        },
    )
    control.ask(point("b16", 16), END)
    done = subprocess.run(
        [INTERPRETER, str(WORKLOADS / WORKER)],
        env=control.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = control.results()["b16"]
    assert result["ok"], result["error"]
    assert float(result["notes"]["supported_operators"]) == 1.0
    assert model.read_bytes() == before


@needs_deepsparse
@pytest.mark.slow
def test_the_real_engine_supports_nothing_of_free_shapes(tmp_path: Path) -> None:
    """Why the worker fixes them: the share of the same model with and without."""
    model = small_onnx.sparse_layers(tmp_path / "sparse.onnx")
    program = (
        "import sys; from deepsparse import Engine\n"
        "batch, shapes = {'fixed': (2, [[2, 256]]), 'free': (None, None)}[sys.argv[2]]\n"
        "engine = Engine(sys.argv[1], batch_size=batch, input_shapes=shapes)\n"
        "print('share', engine.fraction_of_supported_ops)\n"
    )
    shares = {}
    for which in ("free", "fixed"):
        copy = tmp_path / f"{which}.onnx"
        copy.write_bytes(model.read_bytes())
        done = subprocess.run(
            [INTERPRETER, "-c", program, str(copy), which],
            env={**os.environ, "NM_DISABLE_ANALYTICS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        shares[which] = float(done.stdout.rpartition("share ")[2])
    assert shares == {"free": 0.0, "fixed": 1.0}
