"""The worker of a replay with the torch at hand: which overload a recorded call was, what stands in
its tensors, how much memory it may take, and what it refuses.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import needs

needs.packages("torch")
pytestmark = needs.TORCH_HERE

NOTHING = {"kind": "value", "texts": [], "listed": False, "lost": False}
LOST = {**NOTHING, "lost": True}


def tensor(*dims: int, dtype: str = "float32", strides: list[int] | None = None) -> dict:
    return {"kind": "tensor", "dims": list(dims), "dtype": dtype, "strides": strides}


def tensors(*members: list[int]) -> dict:
    return {"kind": "tensors", "members": list(members)}


def value(*texts: str, listed: bool = False) -> dict:
    return {**NOTHING, "texts": list(texts), "listed": listed}


@pytest.fixture
def worker(workloads: Path) -> SimpleNamespace:
    """The modules of the worker, and a session on the CPU with short repetitions."""
    import torch

    from profharness_workloads.replay import arguments, overloads, replay_torch, values

    plan = {
        "device": "cpu",
        "seed": 0,
        "min_seconds": 0.001,
        "memory_limit": 1 << 24,
        "profiler": {"record_shapes": True},
        "limit_s": 60,
        "threads": 0,
    }
    session = replay_torch.Session(torch, plan)
    session._evict = lambda: None  # the caches of this machine are no matter here

    def choose(name: str, *inputs: dict) -> overloads.Choice:
        return overloads.choose(replay_torch.schemas(torch, name), list(inputs), "cpu")

    def one(name: str, *inputs: dict, list_type: str = "float32") -> dict:
        return session.one({"name": name, "inputs": list(inputs), "list_type": list_type})

    return SimpleNamespace(
        torch=torch,
        Unfit=overloads.Unfit,
        arguments=arguments,
        values=values,
        main=replay_torch.main,
        choose=choose,
        one=one,
        session=session,
    )


@pytest.mark.parametrize(
    ("name", "inputs", "overload"),
    [
        ("aten::add", [tensor(4), tensor(4), value("1")], "Tensor"),
        ("aten::add", [tensor(4), value("2"), value("1")], "Scalar"),
        ("aten::add", [tensor(4), tensor(4), value("1"), tensor(4)], "out"),
        (
            "aten::sum",
            [tensor(4, 5), value("1", listed=True), value("True"), NOTHING],
            "dim_IntList",
        ),
        ("aten::sum", [tensor(4, 5), NOTHING], ""),
        ("aten::mean", [tensor(4, 5), value("1", listed=True), value("False"), NOTHING], "dim"),
        ("aten::eq", [tensor(4), value("0")], "Scalar"),
        ("aten::max", [tensor(4, 5), value("1"), value("False")], "dim"),
        ("aten::max", [tensor(4, 5)], ""),
        (
            "aten::to",
            [tensor(4), value("15"), value("False"), value("False"), NOTHING],
            "dtype",
        ),
        ("aten::arange", [value("32"), NOTHING, NOTHING, NOTHING, value("False")], ""),
        ("aten::where", [tensor(4, dtype="bool"), tensor(4), tensor(4)], "self"),
        ("aten::masked_fill", [tensor(4), tensor(4, dtype="bool"), value("-inf")], "Scalar"),
    ],
)
def test_the_overload_is_told_by_the_types(worker, name, inputs, overload):
    choice = worker.choose(name, *inputs)
    assert (choice.overload, choice.chosen) == (overload, ())


@pytest.mark.parametrize(
    ("name", "inputs", "words"),
    [
        ("aten::from_file", [NOTHING, NOTHING, value("4")], "text `filename` is not recorded"),
        ("aten::record_stream", [tensor(4), NOTHING], "type Stream, which no trace holds"),
        ("aten::index", [tensor(4), NOTHING], "list `indices` is not recorded"),
        ("aten::topk", [tensor(9), LOST], "value `k` is not recorded"),
        ("aten::mm", [tensor(4, 4), NOTHING], "tensor `mat2` is not recorded"),
        ("aten::relu", [tensor(4)] * 9, "more arguments"),
        ("aten::topk", [tensor(9), value("0.5")], "`k` is of the type"),
        ("aten::topk", [tensor(9), value("import os")], "is no number"),
        ("aten::no_such_operator", [], "no operator no_such_operator"),
        ("aten::len", [tensor(4)], "no operator len"),
        ("aten::mm()", [], "none of an operator"),
    ],
)
def test_what_cannot_be_called_says_why(worker, name, inputs, words):
    with pytest.raises(worker.Unfit, match=words):
        worker.choose(name, *inputs)


def test_a_number_that_is_not_recorded_gets_its_default_and_is_named(worker):
    choice = worker.choose("aten::addmm", tensor(4), tensor(4, 4), tensor(4, 4), LOST, LOST)
    assert choice.chosen == ("beta: 1 (not recorded)", "alpha: 1 (not recorded)")


def test_tensors_lie_as_recorded(worker):
    torch = worker.torch
    choice = worker.choose("aten::relu", tensor(2, 3, 4, strides=[0, 1, 16]))
    call = worker.arguments.build(torch, "relu", choice, "float32", torch.device("cpu"))
    (made,) = call.positional
    assert made.shape == (2, 3, 4)
    assert made.stride() == (0, 1, 16)
    assert made.untyped_storage().nbytes() == 4 * (1 + 2 + 3 * 16)
    assert 0.5 <= float(made.min()) <= float(made.max()) < 1


@pytest.mark.parametrize(
    ("operator", "argument", "sizes", "most"),
    [
        ("embedding", "indices", {"weight": [30, 4]}, 29),
        ("index_select", "index", {"self": [7, 9], "dim": 1}, 8),
        ("gather", "index", {"self": [7, 9], "dim": -1}, 8),
        ("scatter_", "index", {"self": [7, 9], "dim": 0}, 6),
        ("nll_loss_forward", "target", {"self": [8, 100]}, 99),
        ("embedding_dense_backward", "indices", {"num_weights": 12}, 11),
    ],
)
def test_indices_exist_and_are_named(worker, operator, argument, sizes, most):
    what = worker.values.filling(operator, argument, "int64", sizes)
    assert what.says == f"{argument}: evenly spread from 0 to {most}"
    flat = worker.torch.empty(1000, dtype=worker.torch.int64)
    worker.values.fill(worker.torch, flat, what)
    assert (int(flat.min()), int(flat.max())) == (0, most)


def test_indices_of_an_operator_without_a_rule_are_0(worker):
    what = worker.values.filling("unheard_of", "index", "int64", {})
    assert (what.low, what.high) == (0, 1)
    assert "all 0" in what.says


def test_a_call_is_timed_in_three_ways(worker):
    found = worker.one("aten::addmm", tensor(8), tensor(8, 8), tensor(8, 8), value("1"), value("1"))
    assert found["overload"] == ""
    assert found["chosen"] == []
    assert len(found["warm"]["ns"]) >= 10
    assert len(found["profiled"]) >= 5
    assert len(found["cold"]) >= 3
    assert min(*found["warm"]["ns"], *found["profiled"], *found["cold"]) > 0
    assert [slot["name"] for slot in found["slots"]] == ["self", "mat1", "mat2", "beta", "alpha"]
    assert [slot["keyword"] for slot in found["slots"]] == [False, False, False, True, True]


def test_a_list_of_tensors_gets_a_type_that_is_named(worker):
    found = worker.one("aten::cat", tensors([4, 2], [4, 3]), value("1"), list_type="bfloat16")
    assert found["chosen"] == ["tensors: element type bfloat16"]
    assert [one["dtype"] for one in found["slots"][0]["tensors"]] == ["bfloat16"] * 2


def test_what_a_call_writes_is_put_back(worker):
    torch = worker.torch
    choice = worker.choose("aten::mul_", tensor(4), value("0.001"))
    call = worker.arguments.build(torch, "mul_", choice, "float32", torch.device("cpu"))
    runner = worker.session._runner(torch.ops.aten.mul_.Scalar, call)
    first = call.positional[0].clone()
    runner.run()
    assert float(call.positional[0].max()) < 0.01
    runner.restore()
    assert torch.equal(call.positional[0], first)
    assert runner.writes


def test_waiting_for_a_core_is_taken_off(workloads, monkeypatch):
    from profharness_workloads.replay import waiting

    told = iter([{"1": 100, "2": 0}, {"1": 400, "2": 900, "3": 5}, {"1": 0}, {"1": 9999}])
    monkeypatch.setattr(waiting, "delays", lambda: next(told))
    clock = waiting.Waiting(counts=True)
    clock.begin()
    assert clock.off(1000.0) == 100.0  # the second thread waited longest
    assert clock.share() == 0.9
    clock.begin()
    assert clock.off(1000.0) == 20.0  # never less than a little of it
    assert waiting.Waiting(counts=False).off(1000.0) == 1000.0


def test_what_is_left_is_the_time_on_a_core(workloads):
    from profharness_workloads.replay import waiting

    assert str(os.getpid()) in waiting.delays()
    clock = waiting.Waiting(counts=True)
    clock.begin()
    start, used = time.perf_counter_ns(), time.thread_time_ns()
    while time.thread_time_ns() - used < 50_000_000:
        pass
    left = clock.off(time.perf_counter_ns() - start)
    assert 0.8 * 50e6 < left < 1.3 * 50e6


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("aten::relu", [tensor(1 << 30)]),
        ("aten::zeros", [value("1000000", "1000000", listed=True)]),
        ("aten::mm", [tensor(1 << 16, 1), tensor(1, 1 << 16)]),
        ("aten::repeat", [tensor(4), value("1000000000", listed=True)]),
        ("aten::relu", [tensor(1 << 40, 1 << 40)]),
    ],
)
def test_more_memory_than_allowed_is_refused_before_anything_is_made(worker, name, inputs):
    with pytest.raises(worker.Unfit, match="memory"):
        worker.one(name, *inputs)


def test_a_plan_is_worked_off_to_its_end(worker, tmp_path, monkeypatch):
    from profharness_workloads.replay import replay_torch

    # this process is that of the tests
    monkeypatch.setattr(replay_torch, "limit_memory", lambda *_: None)
    monkeypatch.setattr(replay_torch.Session, "evict", lambda _: None)
    results = tmp_path / "results.jsonl"
    calls = [
        {"id": 0, "name": "aten::relu", "list_type": "float32", "inputs": [tensor(8)]},
        {"id": 1, "name": "aten::mm", "list_type": "float32", "inputs": [tensor(3), tensor(4)]},
        {"id": 2, "name": "aten::nothing", "list_type": "float32", "inputs": []},
    ]
    plan = {**worker.session.plan, "results": str(results), "calls": calls}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    assert worker.main(["--plan", str(path)]) == 0
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["kind"] for line in lines] == [
        *("hello", "begin", "result", "begin", "refused", "begin", "refused", "bye")
    ]
    assert lines[4]["error"].startswith("torch: ")
    assert lines[6]["error"] == "this torch has no operator nothing in aten"
