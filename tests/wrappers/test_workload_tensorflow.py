"""The tensorflow backend: real CMS models against their reference values, SavedModels, FLOP counts,
whole runs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import shared_path
from tests.tensorflow_python import INTERPRETER, needs_tensorflow
from tests.wrappers.control import END, WORKLOADS, Control, point

of_one_process = pytest.mark.xdist_group(
    "tensorflow"
)  # the figures of one long process, which no second worker needs to make
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}

# One process makes all of these figures, since importing tensorflow costs seconds.
FACTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from profharness_workloads.shared import inputs, tensorflow_models
from profharness_workloads.shared.protocol import Spec
tf = tensorflow_models.import_tensorflow()
folder, models = sys.argv[2], sys.argv[3]
found = {}

def facts(name, path, arrays=None, batch=2, seed=20260101):
    loaded = tensorflow_models.load(tf, Spec("tensorflow", path), "cpu")
    if arrays is None:
        rng = np.random.default_rng(seed)
        arrays = [rng.standard_normal((batch, *spec.dims)).astype(np.float32) for spec in loaded.inputs]
    results = loaded.call(arrays)
    found[name] = {"inputs": [str(spec) for spec in loaded.inputs], "outputs": list(loaded.outputs), "form": loaded.form,
                   "shapes": [list(one.shape) for one in results], "first": results[0].ravel()[:4].astype(float).tolist(),
                   "sum": float(results[0].astype(float).sum()), "count": list(tensorflow_models.count(loaded, loaded.inputs))}

class Linear(tf.Module):
    def __init__(self):
        self.weights = tf.Variable(tf.reshape(tf.range(12.0), (4, 3)))

    @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32)])
    def serve(self, x):
        return {"y": tf.matmul(x, self.weights)}

linear = Linear()
tf.saved_model.save(linear, folder + "/saved", signatures={"serving_default": linear.serve})
facts("saved", folder + "/saved", [np.eye(4, dtype=np.float32)[:2]])
graph = tf.Graph()
with graph.as_default():
    x = tf.compat.v1.placeholder(tf.float32, (None, 8, 8, 3), name="image")
    y = tf.nn.conv2d(x, tf.ones((3, 3, 3, 5)), 1, "SAME", name="convolved")
    tf.reduce_sum(y, axis=[1, 2], name="summed")
open(folder + "/conv.graphdef", "wb").write(graph.as_graph_def().SerializeToString())
facts("frozen", folder + "/conv.graphdef", [np.ones((2, 8, 8, 3), np.float32)])
if models:
    rng = np.random.default_rng(20260101)
    event = [rng.standard_normal((2, 4500, 8)), rng.integers(0, 3, (2, 4500, 1)), rng.integers(0, 2, (2, 4500, 1)), rng.integers(0, 2, (2, 4500, 1))]
    event = [array.astype(np.float32) for array in event]
    for version in "12":
        facts("deepmet" + version, models + "/deepmet/" + version + "/model.graphdef", event)
    facts("facile", models + "/facile_all_v2/1/model.graphdef", batch=4)
    facts("deeptau", models + "/deeptau_inner/1/model.graphdef", batch=8)
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tensorflow")
    real = shared_path("fixtures/models")
    models = str(real) if real.is_dir() else ""
    done = subprocess.run(
        [INTERPRETER, "-c", FACTS, str(WORKLOADS.parent), str(folder), models],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=ENV,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = {**json.loads(done.stdout), "folder": str(folder)}
    return found


@needs_tensorflow
@pytest.mark.slow
@of_one_process
def test_a_saved_model_is_called_by_its_signature(facts: dict[str, Any]) -> None:
    saved = facts["saved"]
    assert (saved["form"], saved["inputs"], saved["outputs"]) == (
        "SavedModel",
        ["x [4] float32"],
        ["y"],
    )
    assert saved["first"] == [0.0, 1.0, 2.0, 3.0]
    assert saved["count"] == [2 * 4 * 3, ""]


@needs_tensorflow
@pytest.mark.slow
@of_one_process
def test_a_frozen_graph_tells_its_inputs_and_results(facts: dict[str, Any]) -> None:
    frozen = facts["frozen"]
    assert (frozen["inputs"], frozen["outputs"]) == (["image [8, 8, 3] float32"], ["summed"])
    assert frozen["count"] == [2 * 8 * 8 * 5 * 3 * 3 * 3, ""]
    # 36 inner pixels see 27 inputs each, the 24 edge ones 18, the 4 corners 12
    assert frozen["first"] == [36 * 27 + 24 * 18 + 4 * 12] * 4


@needs_tensorflow
@pytest.mark.slow
@of_one_process
@pytest.mark.parametrize(
    ("name", "first", "shape"),
    [
        ("deepmet1", [-133.39302, -84.405975, -38.456394, 65.487923], [2, 2]),
        ("deepmet2", [52.499092, -165.91655, 51.443981, -45.127663], [2, 2]),
        ("facile", [26923.4316, -82.718086, -56.871037, 6341.8457], [4, 1]),
        ("deeptau", [34.176445, -1.9811568, 0.9799332, 0.5585634], [8, 1, 1, 64]),
    ],
)
def test_models_of_the_experiment_give_their_reference_values(
    facts: dict[str, Any], shared: Path, name: str, first: list[float], shape: list[int]
) -> None:
    assert shared.is_dir()
    assert facts[name]["first"] == pytest.approx(first, rel=1e-5)
    assert facts[name]["shapes"] == [shape]


@needs_tensorflow
@pytest.mark.slow
@of_one_process
def test_deepmets_cost_is_that_of_its_four_layers(facts: dict[str, Any], shared: Path) -> None:
    """41.9 MFLOP an event: 4500 x 2 x (32*64 + 64*32 + 32*16 + 16*3), and the embedding lookups'
    products.
    """
    assert shared.is_dir()
    assert facts["deepmet1"]["count"][0] == pytest.approx(
        4500 * 2 * (32 * 64 + 64 * 32 + 32 * 16 + 16 * 3), rel=2e-3
    )
    assert facts["deeptau"]["sum"] == pytest.approx(-2603.111155, rel=1e-6)


@needs_tensorflow
@pytest.mark.slow
@of_one_process
def test_points_through_a_real_worker(facts: dict[str, Any], tmp_path: Path) -> None:
    control = Control(
        tmp_path,
        {
            "backend": "tensorflow",
            "model": str(Path(facts["folder"]) / "conv.graphdef"),
            "device": "cpu",
            "seed": 5,
        },
    )
    control.ask(point("one", 2, trials=4), END)
    done = subprocess.run(
        [INTERPRETER, str(WORKLOADS / "batch/tensorflow_worker.py")],
        env={**control.env, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = control.results()["one"]
    assert result["ok"], result["error"]
    assert len(result["trials_ns"]) == 4
    assert result["flops_per_item"] == 2 * 8 * 8 * 5 * 3 * 3 * 3


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is not None, reason="tensorflow is installed here"
)
def test_without_tensorflow_the_worker_says_how_to_get_it(tmp_path: Path) -> None:
    model = tmp_path / "m.graphdef"
    model.write_bytes(b"")
    control = Control(tmp_path, {"backend": "tensorflow", "model": str(model), "device": "cpu"})
    control.ask(point("one", 2), END)
    status, err = control.serve("batch/tensorflow_worker.py")
    assert status == 3
    assert "profharness[tensorflow]" in err


@needs_tensorflow
@pytest.mark.slow
def test_a_file_that_is_no_graph_is_bad_input(tmp_path: Path) -> None:
    model = tmp_path / "m.graphdef"
    model.write_bytes(b"no graph at all")
    control = Control(tmp_path, {"backend": "tensorflow", "model": str(model), "device": "cpu"})
    control.ask(point("one", 2), END)
    done = subprocess.run(
        [INTERPRETER, str(WORKLOADS / "batch/tensorflow_worker.py")],
        env=control.env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 4
    assert "not a frozen graph" in done.stderr
