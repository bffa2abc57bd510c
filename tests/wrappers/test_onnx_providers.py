"""Execution providers of onnxruntime as the workers choose, open and judge them, on a stand-in that
has providers of GPUs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.wrappers.control import END, Control, point

STAND_IN = Path(__file__).parents[1] / "fakes" / "stand_in_onnxruntime"
MIGRAPHX, ROCM, CUDA, TENSORRT, CPU = (
    f"{name}ExecutionProvider" for name in ("MIGraphX", "ROCM", "CUDA", "Tensorrt", "CPU")
)
Set = Callable[..., None]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_VISIBLE_DEVICES") or name.startswith("ORT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Set:
    """Sets variables of the stand-in."""

    def set_all(**variables: object) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(
                f"STAND_IN_ORT_{name}" if name != "ORT" else "STAND_IN_ORT", f"{value}"
            )

    return set_all


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"a model")
    return path


def runtime() -> Any:
    """The stand-in, read anew so that its version is that of now."""
    spec = importlib.util.spec_from_file_location(
        "stand_in_ort", STAND_IN / "onnxruntime/__init__.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stand_in_ort"] = module
    spec.loader.exec_module(module)
    return module


def spec_of(path: Path | str = "m", *names: str, **fields: Any) -> Any:
    from profharness_workloads.shared import protocol

    asked = tuple(protocol.Provider(name) for name in names) or None
    return protocol.Spec("onnxruntime", str(path), **{"providers": asked, **fields})


def asked(name: str, **options: str) -> Any:
    from profharness_workloads.shared import protocol

    return (protocol.Provider(name, options),)


@pytest.fixture
def sessions(workloads: Path) -> ModuleType:
    from profharness_workloads.shared import onnx_sessions

    return onnx_sessions


@pytest.mark.parametrize(
    ("available", "names", "device", "chosen", "gpu"),
    [
        ([CPU, ROCM, MIGRAPHX], (), "auto", [MIGRAPHX, CPU], 0),
        ([CUDA, CPU], (), "cuda:2", [CUDA, CPU], 2),
        ([TENSORRT, CUDA, CPU], (), "auto", [CUDA, CPU], 0),
        ([CPU, ROCM, MIGRAPHX], (), "cpu", [CPU], 0),
        ([CPU], (), "auto", [CPU], 0),
        ([CPU, ROCM, MIGRAPHX], (ROCM,), "auto", [ROCM], 0),
        ([CPU, CUDA, TENSORRT], (TENSORRT, CUDA, CPU), "cuda:1", [TENSORRT, CUDA, CPU], 1),
    ],
)
def test_providers_are_taken_in_order(
    workloads: Path,
    available: list[str],
    names: tuple[str, ...],
    device: str,
    chosen: list[str],
    gpu: int,
) -> None:
    from profharness_workloads.shared import providers

    choice = providers.chosen(available, spec_of("m", *names, device=device), 0)
    assert [one.name for one in choice.providers] == chosen
    assert (choice.gpu, choice.missing) == (gpu, "")
    assert [one.options for one in choice.providers] == [
        {"device_id": str(gpu)} if one.name != CPU else {} for one in choice.providers
    ]


def test_ranks_of_a_node_take_its_visible_gpus_in_turn(
    workloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from profharness_workloads.shared import providers

    assert providers.chosen([ROCM], spec_of(), 3).gpu == 3
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3")
    assert providers.chosen([ROCM], spec_of(), 3).gpu == 0
    own = spec_of(providers=asked(ROCM, device_id="5"))
    assert providers.chosen([ROCM], own, 3).gpu == 5


def test_a_provider_that_is_not_there_is_refused_or_left_out(workloads: Path) -> None:
    from profharness_workloads.shared import protocol, providers

    with pytest.raises(protocol.Refusal, match=f"no {ROCM} .it has {CPU}") as refused:
        providers.chosen([CPU], spec_of("m", ROCM, CPU), 0)
    assert refused.value.code == protocol.MISSING
    assert "onnxruntime-rocm, up to 1.22" in refused.value.hint
    choice = providers.chosen([CPU], spec_of("m", ROCM, allow_fallback=True), 0)
    assert [one.name for one in choice.providers] == [CPU]
    assert f"no {ROCM}" in choice.missing
    choice = providers.chosen([CPU], spec_of(device="cuda", allow_fallback=True), 0)
    assert "no GPU provider" in choice.missing


def test_a_session_has_what_was_asked_of_it(
    sessions: ModuleType,
    model: Path,
    given: Set,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given(LOG=tmp_path / "log", ON_CPU=2)
    wish = spec_of(
        model,
        providers=asked(MIGRAPHX, migraphx_fp16_enable="1", migraphx_model_cache_dir="/c"),
        device="cuda:1",
        optimization="basic",
    )
    one = sessions.opened(runtime(), str(model), wish, 0)
    assert (one.device, one.gpu, one.fallback, one.compiles) == ("cuda:1", 1, "", True)
    assert json.loads((tmp_path / "log").read_text()) == {
        "providers": {
            MIGRAPHX: {
                "device_id": "1",
                "migraphx_fp16_enable": "1",
                "migraphx_model_cache_dir": "/c",
            },
            CPU: {},
        },
        "level": "ORT_ENABLE_BASIC",
        "enable_fallback": 0,
    }
    monkeypatch.setenv("ORT_MIGRAPHX_FP16_ENABLE", "0")
    monkeypatch.setenv("ORT_TENSORRT_FP16_ENABLE", "1")  # of a provider that does not run
    notes = sessions.notes_of(one, wish)
    assert int(notes.pop("session_ns")) == one.made_ns > 0
    assert notes == {
        "providers": f"{MIGRAPHX},{CPU}",
        "optimization": "basic",
        "provider_options": "migraphx_fp16_enable=1,migraphx_model_cache_dir=/c",
        "provider_variables": "ORT_MIGRAPHX_FP16_ENABLE=0",
        "nodes": f"{MIGRAPHX} 4, {CPU} 2",
        "nodes_on_cpu": "Gather 1, Gemm 1",
    }


@pytest.mark.parametrize("wish", [{}, {"device": "cuda"}, {"names": (MIGRAPHX,)}])
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"LEFT_OUT": MIGRAPHX}, f"onnxruntime left out {MIGRAPHX}"),
        (
            {"RAISES": f"{MIGRAPHX}=HIP failure 100: no ROCm-capable device is detected"},
            f"onnxruntime made no session on {MIGRAPHX}: HIP failure 100",
        ),
    ],
)
def test_a_provider_that_cannot_run_is_refused_unless_another_may(
    sessions: ModuleType,
    model: Path,
    given: Set,
    wish: dict[str, Any],
    allowed: bool,
    way: dict[str, str],
    words: str,
) -> None:
    from profharness_workloads.shared import protocol

    given(**way)
    wish = dict(wish)
    spec = spec_of(model, *wish.pop("names", ()), allow_fallback=allowed, **wish)
    if (wish == {} and not spec.providers) or allowed:
        one = sessions.opened(runtime(), str(model), spec, 0)
        assert (one.device, one.compiles) == ("cpu", False)
        assert one.fallback.startswith(words)
        assert one.fallback.endswith(f"it ran on {CPU} instead")
        assert sessions.notes_of(one, spec)["providers"] == CPU
    else:
        with pytest.raises(protocol.Refusal) as refused:
            sessions.opened(runtime(), str(model), spec, 0)
        assert refused.value.message.startswith(words)
        assert refused.value.code == protocol.MISSING


def test_the_next_provider_takes_over_in_the_order_of_the_wish(
    sessions: ModuleType, model: Path, given: Set
) -> None:
    given(PROVIDERS=f"{TENSORRT},{CUDA},{CPU}", RAISES=f"{TENSORRT}=no library")
    wish = spec_of(model, TENSORRT, CUDA, CPU, allow_fallback=True)
    one = sessions.opened(runtime(), str(model), wish, 0)
    assert one.session.get_providers() == [CUDA, CPU]
    assert one.device == "cuda:0"
    assert one.fallback.endswith(f"no library; it ran on {CUDA} instead")


@pytest.mark.parametrize(
    ("version", "option", "hint"),
    [
        ("1.22.1", "migraphx_model_cache_dir", "came with onnxruntime 1.23"),
        ("1.23.2", "migraphx_save_compiled_model", "is of onnxruntime 1.19 to 1.22"),
        ("1.23.2", "migraphx_fp61_enable", "documentation for this version"),
    ],
)
def test_an_option_that_this_version_does_not_know_is_named(
    sessions: ModuleType, model: Path, given: Set, version: str, option: str, hint: str
) -> None:
    from profharness_workloads.shared import protocol

    given(ORT=version)
    wish = spec_of(model, providers=asked(MIGRAPHX, **{option: "1"}), allow_fallback=True)
    with pytest.raises(protocol.Refusal) as refused:
        sessions.opened(runtime(), str(model), wish, 0)
    assert refused.value.code == protocol.USAGE, "a wrong option is no missing device"
    assert refused.value.message == (
        f"--provider: onnxruntime {version} knows no option {option} of {MIGRAPHX}"
    )
    assert hint in refused.value.hint


def test_a_broken_model_is_blamed_on_the_file_whatever_the_provider(
    sessions: ModuleType, model: Path
) -> None:
    from profharness_workloads.shared import protocol

    model.write_bytes(b"broken")
    for names in ((MIGRAPHX,), (CPU,)):
        with pytest.raises(protocol.Refusal, match="cannot load it: Protobuf") as refused:
            sessions.opened(runtime(), str(model), spec_of(model, *names), 0)
        assert refused.value.code == protocol.BAD_INPUT


def test_onnxruntime_before_1_24_does_not_tell_who_got_which_node(sessions: ModuleType) -> None:
    assert sessions.assigned(object()) == {}


def worker(tmp_path: Path, model: Path, **fields: object) -> Control:
    """A batch worker whose onnxruntime is the stand-in."""
    control = Control(
        tmp_path,
        {"backend": "onnxruntime", "model": str(model), "flops_per_item": 1, **fields},
    )
    control.env["PYTHONPATH"] = str(STAND_IN)
    return control


def test_compiling_stays_out_of_the_trials_and_is_noticed_inside_of_them(
    tmp_path: Path, model: Path
) -> None:
    """The third point's third trial compiles again; the second point finds the first one's shape in
    the cache.
    """
    control = worker(
        tmp_path,
        model,
        providers=[
            {"name": MIGRAPHX, "options": {"migraphx_model_cache_dir": str(tmp_path / "mxr")}}
        ],
    )
    trials = {"trials": 6, "warmup": 0}
    control.ask(point("b2", 2, **trials), point("b2~1", 2, **trials), point("b3", 3, **trials), END)
    # per point one compiling call and six trials: the 18th call is b3's third trial
    assert control.serve(
        "batch/onnxruntime_worker.py", STAND_IN_ORT_COMPILE="0.3", STAND_IN_ORT_AGAIN_AT="18"
    ) == (0, "")
    results = control.results()
    first, again, third = (results[name] for name in ("b2", "b2~1", "b3"))
    assert [one["device"] for one in (first, again, third)] == ["cuda:0"] * 3
    assert [one["cold_cache"] for one in (first, again, third)] == [True, False, True]
    assert 0.3e9 <= first["compile_ns"] < 5e9
    assert again["compile_ns"] < 0.1e9
    assert max(first["trials_ns"]) < 0.2e9
    assert "recompiled" not in first["notes"]
    told = re.match(r"1 of 6 trials took up to ([\d.]+) s", third["notes"]["recompiled"])
    assert told is not None
    assert float(told[1]) == pytest.approx(max(third["trials_ns"]) / 1e9, rel=0.01)
    assert sum(t >= 0.3e9 for t in third["trials_ns"]) == 1


def test_a_run_in_which_the_provider_fails_is_a_failed_point_and_no_run_of_the_cpu(
    tmp_path: Path, model: Path
) -> None:
    control = worker(tmp_path, model, allow_fallback=True)
    control.ask(point("b1", 1), END)
    assert control.serve("batch/onnxruntime_worker.py", STAND_IN_ORT_FAILS_AT="3") == (0, "")
    (result,) = control.results().values()
    assert (result["ok"], result["error"]) == (False, "EPFail: the device was lost")


def runner(path: Path, *, layers: str = "", **fields: Any) -> Any:
    """A served model in the stand-in, with the instance's call."""
    from profharness_workloads.serving import onnxruntime_runner, plan
    from profharness_workloads.shared import protocol

    spec = spec_of(path, MIGRAPHX, **fields)
    served = plan.Served("m", spec, allow_fallback=spec.allow_fallback)
    settings = protocol.Settings(
        spec, str(path.parent), str(path.parent), "bare", tuple(layers.split()), "", "", "", None,
        None, 0,
    )  # fmt: skip
    return onnxruntime_runner.OnnxRunner(served, settings, runtime())


def test_a_served_model_tells_what_compiled_before_and_inside_of_a_level(
    model: Path, given: Set
) -> None:
    import numpy as np

    given(COMPILE="0.05")
    served = runner(model)
    call = served.instance(0)
    batches = {n: [np.ones((n, 4), np.float32)] for n in (1, 2, 4)}
    call(batches[1])
    served.open_window("c1")
    for _ in range(3):
        (output,) = call(batches[1])
        call(batches[2])  # a shape that loading the model has tried
    assert output.tolist() == [[2.0] * 4]
    notes = served.level_notes()
    served.close_window("c1")
    # loading tried batches of two and three, the warm-up one
    assert int(notes["compile_ns"]) >= 0.15e9
    assert "recompiled" not in notes
    assert notes["providers"] == f"{MIGRAPHX},{CPU}"
    served.open_window("c2")
    call(batches[4])
    notes = served.level_notes()
    told = re.match(
        r"executions of shapes that were new to their session: 1, of up to ([\d.]+) s",
        notes["recompiled"],
    )
    assert told is not None
    assert 0.05 <= float(told[1]) < 5  # of 0.05 s; a busy machine adds to it
    assert "compile_ns" not in notes


def test_a_served_model_refuses_and_falls_back_as_a_scan_does(model: Path, given: Set) -> None:
    from profharness_workloads.shared import protocol

    given(LEFT_OUT=MIGRAPHX)
    with pytest.raises(protocol.Refusal, match=f"left out {MIGRAPHX}") as refused:
        runner(model)
    assert refused.value.code == protocol.MISSING
    assert "--allow-fallback serves from the CPU" in refused.value.hint
    served = runner(model, allow_fallback=True)
    assert served.device == "cpu"
    assert f"left out {MIGRAPHX}; it ran on {CPU}" in served.fallback


def test_the_server_answers_a_closed_level_with_the_notes_of_its_models(
    model: Path, given: Set
) -> None:
    from profharness_workloads.serving import records, start, triton_server

    given(ON_CPU=1)
    served = runner(model)
    settings = served._settings
    bound = [start.Bound(served._model, served, [served.instance(0)])]
    windows = triton_server.Windows(settings, bound, records.Records(settings, on=False))
    windows.open("c1")
    windows.close()
    opened, closed = map(json.loads, (model.parent / "windows.jsonl").read_text().splitlines())
    assert (opened["kind"], "notes" in opened) == ("opened", False)
    assert (closed["kind"], closed["id"]) == ("closed", "c1")
    assert closed["notes"]["nodes_on_cpu"] == "Gemm 1"
    assert closed["notes"]["providers"] == f"{MIGRAPHX},{CPU}"


def test_notes_of_several_models_are_joined(workloads: Path) -> None:
    from profharness_workloads.shared import protocol

    together = protocol.joined(
        [{"providers": "A", "compile_ns": "2"}, {"providers": "B", "compile_ns": "3", "x": ""}, {}]
    )
    assert together == {"providers": "A; B", "compile_ns": "5"}
    assert protocol.joined([{"a": "1"}, {"a": "1"}]) == {"a": "1"}
