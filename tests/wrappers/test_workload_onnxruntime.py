"""The onnxruntime worker: real and built-in models, providers, refusals, FLOPs of a graph."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import needs
from tests.wrappers.control import END, WORKLOADS, Control, kinds, point

needs.packages("onnxruntime", "onnx")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """y = x w with x [N, 3] and w [3, 5], then relu."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.ones((3, 5), dtype=np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "small.onnx"
    onnx.save(model, str(path))
    return path


def test_points_of_a_small_model(small: Path, tmp_path: Path) -> None:
    control = Control(tmp_path, {"backend": "onnxruntime", "model": str(small), "threads": 1})
    control.ask(
        point("onnxruntime-b1", 1),
        point("onnxruntime-b0", 0),
        point("onnxruntime-b8", 8, min_seconds=0.05),
        END,
    )
    assert control.serve("batch/onnxruntime_worker.py") == (0, "")
    hello, results = control.records()[0], control.results()
    assert hello["versions"]["onnxruntime"] == importlib.metadata.version("onnxruntime")
    assert [r["ok"] for r in results.values()] == [True, False, True]
    assert results["onnxruntime-b1"]["flops_per_item"] == 2 * 3 * 5
    assert results["onnxruntime-b8"]["items"] == 8
    assert results["onnxruntime-b8"]["device"] == "cpu"
    assert results["onnxruntime-b8"]["notes"]["providers"] == "CPUExecutionProvider"
    last = results["onnxruntime-b8"]
    assert last["starts_ns"][-1] - last["starts_ns"][0] >= 0.04e9
    assert not (control.run / "artifacts").exists()


def test_inputs_from_a_file(small: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((2, 3), dtype=np.float32))
    control = Control(
        tmp_path, {"backend": "onnxruntime", "model": str(small), "inputs": str(tmp_path / "x.npz")}
    )
    control.ask(point("onnxruntime-b5", 5), END)
    assert control.serve("batch/onnxruntime_worker.py")[0] == 0
    assert control.results()["onnxruntime-b5"]["ok"] is True


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"device": "cuda"}, 3, "has no GPU provider"),
        ({"device": "gpu0"}, 2, "no device 'gpu0'"),
        ({"providers": [{"name": "TPUExecutionProvider"}]}, 3, "has no TPUExecutionProvider"),
        ({"shapes": {"w": [3]}}, 2, "names w, which is no input"),
        ({"inputs": "cosmic"}, 2, "no inputs named 'cosmic'"),
        ({"model": "resnet"}, 2, "no model named 'resnet'"),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(
    small: Path, tmp_path: Path, fields: dict, status: int, says: str
) -> None:
    import onnxruntime

    if any(
        "CUDA" in p or "ROCM" in p or "MIGraphX" in p for p in onnxruntime.get_available_providers()
    ):
        pytest.skip("this onnxruntime has a GPU provider")
    control = Control(tmp_path, {"backend": "onnxruntime", "model": str(small), **fields})
    control.ask(END)
    got, err = control.serve("batch/onnxruntime_worker.py")
    assert got == status
    assert says in err
    assert kinds(control.records()) == ["error"]


def test_a_damaged_model_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x06 damaged")
    control = Control(tmp_path, {"backend": "onnxruntime", "model": str(tmp_path / "m.onnx")})
    control.ask(END)
    status, err = control.serve("batch/onnxruntime_worker.py")
    assert status == 4
    assert "onnxruntime cannot load it" in err


@pytest.mark.parametrize(
    ("level", "left"),
    [
        ("off", ["Identity", "MatMul", "Add", "Relu"]),
        ("basic", ["Gemm", "Relu"]),
        ("extended", ["FusedGemm"]),
        ("all", ["FusedGemm"]),
    ],
)
def test_the_graph_is_optimised_as_far_as_asked(
    workloads: Path, tmp_path: Path, level: str, left: list[str]
) -> None:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    from profharness_workloads.shared import onnx_sessions, protocol

    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["i"]),
            helper.make_node("MatMul", ["i", "w"], ["p"]),
            helper.make_node("Add", ["p", "b"], ["s"]),
            helper.make_node("Relu", ["s"], ["y"]),
        ],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5])],
        [
            numpy_helper.from_array(np.ones((3, 5), np.float32), "w"),
            numpy_helper.from_array(np.ones(5, np.float32), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path, optimised = str(tmp_path / "m.onnx"), str(tmp_path / "optimised.onnx")
    onnx.save(model, path)

    def keep(options: onnxruntime.SessionOptions) -> None:
        options.optimized_model_filepath = optimised

    spec = protocol.Spec("onnxruntime", path, optimization=level, device="cpu")
    one = onnx_sessions.opened(onnxruntime, path, spec, 0, keep)
    assert (one.device, one.fallback, one.compiles) == ("cpu", "", False)
    assert [node.op_type for node in onnx.load(optimised).graph.node] == left
    (y,) = one.session.run(None, {"x": np.ones((2, 3), np.float32)})
    assert (y == 4.0).all()


def test_operators_without_a_formula_are_named(workloads: Path, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    from profharness_workloads.shared import flops

    graph = helper.make_graph(
        [
            helper.make_node("Einsum", ["a", "b"], ["c"], equation="ij,jk->ik"),
            helper.make_node("Gemm", ["a", "b"], ["d"], transA=1),
        ],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in "ab"],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in "cd"],
    )
    path = tmp_path / "e.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8),
        str(path),
    )
    ones = np.ones((4, 4), dtype=np.float32)
    count = flops.onnx_count(str(path), {"a": ones, "b": ones})
    assert count.flops == 2 * 4 * 4 * 4
    assert "Einsum" in count.note
    assert flops.onnx_count(str(tmp_path / "no.onnx"), {}).flops is None


REPRODUCE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, onnxruntime
from profharness_workloads.shared import flops
stored = np.load(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 3
session = onnxruntime.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
feeds = {i.name: stored[i.name] for i in session.get_inputs()}
print(np.abs(session.run(None, feeds)[0] - stored["output_ort"]).max())
print(flops.onnx_count(sys.argv[2], {name: array[:1] for name, array in feeds.items()}).flops)
"""


def test_the_real_onnx_tagger_reproduces_its_reference_and_cost(shared: Path) -> None:
    folder = shared / "fixtures/models/particlenet_AK4"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            REPRODUCE,
            str(WORKLOADS.parent),
            str(folder / "1/model.onnx"),
            str(folder / "reference_io.npz"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    worst, flops = done.stdout.split()
    assert float(worst) <= 2e-6
    assert int(flops) == 201468304


def test_the_real_onnx_tagger_is_measured(shared: Path, tmp_path: Path) -> None:
    model = shared / "fixtures/models/particlenet_AK4/1/model.onnx"
    control = Control(
        tmp_path, {"backend": "onnxruntime", "model": str(model), "threads": 1, "inputs": "hep"}
    )
    control.ask(point("onnxruntime-b2", 2), END)
    assert control.serve("batch/onnxruntime_worker.py") == (0, "")
    result = control.results()["onnxruntime-b2"]
    assert result["ok"] is True
    assert "usual particle counts" in result["notes"]["shapes"]


@pytest.mark.slow
def test_the_built_in_model_is_exported_once(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    control = Control(
        tmp_path, {"backend": "onnxruntime", "model": "particlenet", "threads": 1, "inputs": "hep"}
    )
    control.ask(point("onnxruntime-b1", 1), END)
    assert control.serve("batch/onnxruntime_worker.py") == (0, "")
    (exported,) = (tmp_path / "cache").iterdir()
    made = exported.stat().st_mtime_ns
    assert control.serve("batch/onnxruntime_worker.py") == (0, "")
    assert exported.stat().st_mtime_ns == made
    assert control.results("results-0-1.jsonl")["onnxruntime-b1"]["ok"] is True


def test_an_onnxruntime_pass_profiles_each_point_in_a_session_of_its_own(
    small: Path, tmp_path: Path
) -> None:
    control = Control(
        tmp_path,
        {"backend": "onnxruntime", "model": str(small), "threads": 1},
        layers="onnxruntime",
    )
    control.ask(
        point("onnxruntime-b1", 1), point("onnxruntime-b0", 0), point("onnxruntime-b2~1", 2), END
    )
    assert control.serve("batch/onnxruntime_worker.py") == (0, "")
    pid = control.records()[0]["pid"]
    (folder,) = (control.run / "artifacts" / "onnxruntime").glob(f"*/{pid}")
    names = [f"marker-{pid}.json", "onnxruntime-b1.json", "onnxruntime-b2~1.json"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*names, *(f"{name}.profharness.json" for name in names)]
    )
    for name in ("onnxruntime-b1", "onnxruntime-b2~1"):
        result = control.results()[name]
        events = json.loads((folder / f"{name}.json").read_text())
        runs = [e for e in events if e.get("name") == "model_run"]
        assert len(runs) == len(result["warmup_ns"]) + len(result["trials_ns"])
        sidecar = json.loads((folder / f"{name}.json.profharness.json").read_text())
        assert (sidecar["point"], sidecar["role"]) == (name, "trace")
        assert sidecar["start_ns"] > 0
    marker = json.loads((folder / f"marker-{pid}.json.profharness.json").read_text())
    assert marker["role"] == "marker"
    assert len(marker["markers"]) >= 20


ROCTX = """
#include <stdio.h>
#include <stdint.h>
uint64_t roctxRangeStartA(const char *name) { fprintf(stderr, "start %s\\n", name); return 7; }
void roctxRangeStop(uint64_t id) { fprintf(stderr, "stop %d\\n", (int)id); }
"""


@pytest.mark.slow
def test_under_a_tracer_points_and_trials_are_its_ranges(small: Path, tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for a stand-in of roctx")
    (tmp_path / "roctx.c").write_text(ROCTX)
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-o",
            str(tmp_path / "libroctx64.so"),
            str(tmp_path / "roctx.c"),
        ],
        check=True,
    )
    control = Control(tmp_path, {"backend": "onnxruntime", "model": str(small), "threads": 1})
    control.ask(point("onnxruntime-b1", 1, trials=2, warmup=0), END)
    env = {"LD_LIBRARY_PATH": str(tmp_path), "ROCM_PATH": "/nowhere"}
    assert control.serve("batch/onnxruntime_worker.py", **env)[0] == 0
    log = control.run / "points/bare/onnxruntime-b1/stderr.log"
    assert log.read_text() == "", "a bare pass marks nothing"
    assert (
        control.serve("batch/onnxruntime_worker.py", ROCP_TOOL_LIBRARIES="/opt/tool.so", **env)[0]
        == 0
    )
    assert log.read_text().splitlines() == [
        "start profharness.point:onnxruntime-b1",
        "start profharness.trial:onnxruntime-b1:0",
        "stop 7",
        "start profharness.trial:onnxruntime-b1:1",
        "stop 7",
        "stop 7",
    ]
    assert control.results("results-0-1.jsonl")["onnxruntime-b1"]["flops_per_item"] is None
