"""Models of a Triton repository without Triton: how requests become a batch, what is written of
executions, and what the repository holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.serving.model_config import ModelConfig, config_text
from profharness.serving.ready import Tensor

pytestmark = pytest.mark.usefixtures("workloads")

LENGTHS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 7)), min_size=1, max_size=8)
SEED = 11


def requests_of(sizes: Sequence[tuple[int, int]]) -> list[list[Any]]:
    """(items, length) of each: x [items, 2, length] and its mask of ones."""
    rng = np.random.default_rng(SEED)
    return [
        [
            rng.standard_normal((items, 2, length)).astype(np.float32),
            np.ones((items, 1, length), np.float32),
        ]
        for items, length in sizes
    ]


def masked_sum(arrays: Sequence[Any]) -> list[Any]:
    x, mask = arrays
    return [(x * mask).sum(axis=2), mask.sum(axis=(1, 2), keepdims=False)[:, None]]


@given(LENGTHS)
def test_every_way_of_joining_gives_each_request_its_own_answer(
    sizes: list[tuple[int, int]],
) -> None:
    from profharness_workloads.serving import repository_model as written

    requests = requests_of(sizes)
    alone = [masked_sum(arrays) for arrays in requests]
    calls: list[tuple[int, ...]] = []

    def model(arrays: Sequence[Any]) -> list[Any]:
        calls.append(arrays[0].shape)
        return masked_sum(arrays)

    for join, times in (
        (written.join_padded, 1),
        (written.join_grouped, len({length for _, length in sizes})),
    ):
        calls.clear()
        joined = join(requests, model)
        assert len(calls) == joined.calls == times
        assert sum(shape[0] for shape in calls) == sum(items for items, _ in sizes)
        assert joined.values == sum(items * length * 3 for items, _, length in calls)
        for expected, answer in zip(alone, joined.answers, strict=True):
            for one, other in zip(expected, answer, strict=True):
                assert np.allclose(one, other, atol=1e-5)


def test_a_model_without_a_mask_would_see_the_padding() -> None:
    from profharness_workloads.serving import repository_model as written

    def mean(arrays: Sequence[Any]) -> list[Any]:
        return [arrays[0].mean(axis=2)]

    requests = [[np.ones((1, 2, length), np.float32)] for length in (3, 9)]
    assert written.join_grouped(requests, mean).answers[0][0].tolist() == [[1, 1]]
    assert written.join_padded(requests, mean).answers[0][0][0, 0] == pytest.approx(1 / 3)


class Request:
    """One of Triton's requests, as its python backend shows it."""

    def __init__(self, arrays: dict[str, Any], sequence: int | None) -> None:
        self.arrays, self.sequence = arrays, sequence

    def parameters(self) -> str:
        return "" if self.sequence is None else json.dumps({"profharness_seq": self.sequence})


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in for the module that exists inside of Triton's python backend only."""
    module = ModuleType("triton_python_backend_utils")
    made = {
        "get_input_tensor_by_name": lambda request, name: SimpleNamespace(
            as_numpy=lambda: request.arrays[name]
        ),
        "Tensor": lambda name, array: (name, array),
        "TritonError": str,
        "InferenceResponse": lambda output_tensors, error=None: (dict(output_tensors), error),
    }
    for name, value in made.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def model_of(tmp_path: Path, **parameters: str) -> Any:
    """The model as the backend makes it of a configuration, on instance 1."""
    from profharness_workloads.serving.repository_model import TritonPythonModel

    config = {
        "input": [{"name": "x", "dims": [2, -1], "allow_ragged_batch": True}],
        "output": [{"name": "y", "dims": [2, -1]}],
        "parameters": {key: {"string_value": value} for key, value in parameters.items()},
    }
    made = TritonPythonModel()
    made.initialize(
        {
            "model_config": json.dumps(config),
            "model_instance_name": "m_0_1",
            "model_name": "m",
            "model_repository": str(tmp_path),
            "model_version": "1",
        }
    )
    return made


@pytest.mark.usefixtures("backend")
def test_executions_are_written_before_they_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from profharness_workloads.serving import executions_file

    monkeypatch.setenv("RAGGED_EXECUTIONS", str(tmp_path))
    made = model_of(tmp_path, runtime="sleep", join="apart", sleep_ns="1000000")
    follower = executions_file.Follower(str(tmp_path), "m")
    assert follower.news() == []
    given_arrays = [np.zeros((items, 2, length), np.float32) for items, length in ((1, 3), (2, 9))]
    answers = made.execute(
        [Request({"x": given_arrays[0]}, 5), Request({"x": given_arrays[1]}, None)]
    )
    assert [answer[0]["y"].shape for answer in answers] == [(1, 2, 3), (2, 2, 9)]
    (first,) = follower.news()
    assert first.end_ns - first.start_ns >= 1_000_000
    assert first._replace(start_ns=0, end_ns=0) == executions_file.Execution(
        2, 0, 0, 3, 1, 2, 3, 9, 1, 42, 42, (5, -1)
    )
    assert follower.news() == []
    made.execute([Request({"x": given_arrays[0]}, 6)])
    (second,) = follower.news()
    assert second.sequences == (6,)
    assert executions_file.notes([first, second]) == {
        "ragged_executions": "2",
        "ragged_requests": "3",
        "ragged_shapes": "3",
        "ragged_mixed": "1",
        "ragged_most_shapes": "2",
        "ragged_shortest": "3",
        "ragged_longest": "9",
        "ragged_calls": "2",
        "ragged_filled_share": "0.0000",
    }
    assert executions_file.notes([]) == {}


@pytest.mark.usefixtures("backend")
def test_an_execution_that_is_half_written_is_taken_once_it_is_whole(tmp_path: Path) -> None:
    from profharness_workloads.serving import executions_file

    row = np.array([2, *range(10), 71, 72], "<i8").tobytes()
    file = tmp_path / "m-0-99.i64"
    (tmp_path / "m-x-0-99.i64").write_bytes(row)  # of another model
    follower = executions_file.Follower(str(tmp_path), "m")
    for cut in (3, 50, len(row) - 1):
        file.write_bytes(row[:cut])
        assert follower.news() == []
    file.write_bytes(row + row[:8])
    assert [one.sequences for one in follower.news()] == [(71, 72)]
    file.write_bytes(row + row)
    assert len(follower.news()) == 1
    assert executions_file.Follower("", "m").news() == []


@pytest.mark.usefixtures("backend")
def test_what_the_model_raises_is_every_requests_answer(tmp_path: Path) -> None:
    made = model_of(tmp_path, runtime="sleep", join="group", sleep_ns="0")
    wrong = [Request({"x": np.zeros((1, 2, 3), np.float32)}, 1)] * 2
    made._call = lambda _arrays: 1 / 0
    answers = made.execute(wrong)
    assert [(outputs, error) for outputs, error in answers] == [
        ({}, "ZeroDivisionError: division by zero")
    ] * 2


def served(**fields: object) -> Any:
    from profharness_workloads.serving.plan import Served
    from profharness_workloads.shared.protocol import Spec

    spec = Spec("torch", str(fields.pop("model", "sleep:20ms")))
    return Served("tagger", spec, ragged="triton", **fields)


def loaded(inputs: dict[str, tuple[int | None, ...]], output: tuple[int | None, ...]) -> Any:
    from profharness_workloads.serving.runner import Signature
    from profharness_workloads.shared.inputs import TensorSpec

    return SimpleNamespace(
        backend="torch",
        signature=Signature(
            tuple(TensorSpec(name, "float32", dims) for name, dims in inputs.items()),
            (TensorSpec("y", "float32", output),),
        ),
    )


@pytest.mark.parametrize(
    ("inputs", "output", "way"),
    [
        ({"pf_x": (2, None), "pf_mask": (1, None)}, (8,), "pad"),
        ({"pf_x": (2, None), "pf_mask": (1, None), "sv_x": (3, None)}, (8,), "group"),
        ({"pf_x": (2, None), "pf_mask": (1, None), "fixed": (3,)}, (8,), "pad"),
        ({"pf_x": (2, None), "pf_mask": (1, None)}, (8, None), "group"),
        ({"x__0": (2, None)}, (8,), "group"),
        ({"pf_x__0": (2, None), "pf_mask__1": (1, None)}, (8,), "pad"),
    ],
)
def test_only_models_that_mask_every_ragged_input_are_padded(
    inputs: dict[str, tuple[int | None, ...]], output: tuple[int | None, ...], way: str
) -> None:
    from profharness_workloads.serving.repository import joining

    assert joining(loaded(inputs, output)) == way


def test_the_servers_configuration_is_the_one_that_the_record_writes() -> None:
    pb2 = pytest.importorskip("tritonclient.grpc.model_config_pb2", reason="needs tritonclient")
    from google.protobuf import text_format

    from profharness_workloads.serving.repository import config_text as of_server
    from profharness_workloads.shared.protocol import Refusal

    runner = loaded({"x": (2, None), "z": (3,)}, ())
    told = {"runtime": "torch", "file": "model.pt"}
    model = served(instances=2, max_batch_size=16, queue_delay_us=300, preferred=(4,))
    own = text_format.Parse(of_server(model, runner.signature, told), pb2.ModelConfig())
    recorded = config_text(
        ModelConfig(
            name="tagger",
            backend="python",
            inputs=(Tensor("x", "FP32", (2, -1)), Tensor("z", "FP32", (3,))),
            outputs=(Tensor("y", "FP32", ()),),
            max_batch_size=16,
            instances=2,
            kind="cpu",
            queue_delay_us=300,
            preferred=(4,),
            ragged=True,
            parameters=told,
        )
    )
    assert own == text_format.Parse(recorded, pb2.ModelConfig())
    with pytest.raises(Refusal, match="no input with a free dimension"):
        of_server(model, loaded({"x": (2, 3)}, (2,)).signature, told)


def test_a_store_lies_in_the_run_or_where_it_is_told(tmp_path: Path) -> None:
    from profharness_workloads.serving.plan import Plan
    from profharness_workloads.serving.repository import Store

    plan = Plan((served(),), SimpleNamespace(), repository="torch@triton")
    store = Store.of(plan, str(tmp_path / "run"), str(tmp_path / "control"))
    assert store.repository == str(tmp_path / "run/repository/torch@triton")
    Path(store.executions, "of-a-server-before").touch()
    (Path(store.repository) / "m/1/__pycache__").mkdir(parents=True)
    again = Store.of(
        plan._replace(repository=str(tmp_path / "own"), records=False), "run", str(tmp_path)
    )
    assert (again.repository, again.executions) == (str(tmp_path / "own"), "")
    assert (
        list(
            Path(
                Store.of(plan, str(tmp_path / "run"), str(tmp_path / "control")).executions
            ).iterdir()
        )
        == []
    )
    store.tidy()
    assert (Path(store.repository) / "m/1").is_dir()
    assert not (Path(store.repository) / "m/1/__pycache__").exists()


def test_the_repository_is_told_the_providers_that_each_session_got() -> None:
    """On the stand-ins' word: a GPU's provider has its index and the options that were asked."""
    from profharness_workloads.serving.onnxruntime_runner import OnnxRunner
    from profharness_workloads.shared.protocol import Provider, Spec

    names = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    asked = (
        Provider("TensorrtExecutionProvider", {"trt_fp16_enable": "1"}),
        Provider("CUDAExecutionProvider", {}),
    )
    session = SimpleNamespace(get_providers=lambda: names)
    runner = SimpleNamespace(
        _model=SimpleNamespace(spec=Spec("onnxruntime", "m.onnx", providers=asked)),
        _instances=[
            SimpleNamespace(opened=SimpleNamespace(session=session, gpu=gpu)) for gpu in (0, 1)
        ],
    )
    told = OnnxRunner.recipe(runner)
    assert told["optimization"] == "ORT_ENABLE_ALL"
    assert json.loads(told["providers"])[1] == [
        ["TensorrtExecutionProvider", {"device_id": "1", "trt_fp16_enable": "1"}],
        ["CUDAExecutionProvider", {"device_id": "1"}],
        ["CPUExecutionProvider", {}],
    ]


def test_instances_take_their_devices_and_providers_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from profharness_workloads.serving import repository_model as written

    assert [written._own({"devices": "cuda:0,cuda:1"}, at) for at in range(3)] == [
        "cuda:0",
        "cuda:1",
        "cuda:0",
    ]
    made: list[Any] = []
    stand_in = ModuleType("onnxruntime")
    stand_in.SessionOptions = SimpleNamespace  # type: ignore[attr-defined]  # made up here
    stand_in.GraphOptimizationLevel = SimpleNamespace(ORT_ENABLE_ALL=9)  # type: ignore[attr-defined]  # made up here

    def session(path: str, options: Any, **given: Any) -> Any:
        made.append((path, options.graph_optimization_level, given["providers"]))
        return SimpleNamespace(
            get_inputs=lambda: [SimpleNamespace(name="x")],
            run=lambda _outputs, feeds: [2 * feeds["x"]],
        )

    stand_in.InferenceSession = session  # type: ignore[attr-defined]  # made up here
    monkeypatch.setitem(sys.modules, "onnxruntime", stand_in)
    told = {
        "file": "model.onnx",
        "providers": json.dumps(
            [[["CUDAExecutionProvider", {"device_id": str(gpu)}]] for gpu in (0, 1)]
        ),
    }
    call = written.onnx_model(str(tmp_path), told, 1)
    assert made == [
        (str(tmp_path / "model.onnx"), 9, [("CUDAExecutionProvider", {"device_id": "1"})])
    ]
    assert call([np.ones(2)])[0].tolist() == [2, 2]
