"""Which model is served: names, files, Triton configurations, the cache."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

CONFIG = """
# a comment { with brackets
name: "tagger"  platform: "pytorch_libtorch"
max_batch_size : 500
dynamic_batching { preferred_batch_size: [ 200, 400 ] }
input [ { name: "mask__1" data_type: TYPE_FP32 dims: [ 1, -1 ] },
        { name: "ids__0", data_type: TYPE_INT64, dims: [ 7 ] } ]
output [ { name: "softmax__0" data_type: TYPE_FP32 dims: [ 8 ] } ]
"""


@pytest.fixture
def models(workloads: Path) -> ModuleType:
    from profharness_workloads.shared import models

    return models


def spec_of(models: ModuleType, **fields: object):
    return models.Spec(**{"backend": "torch", "model": "particlenet", **fields})


def test_triton_configuration_is_found_one_folder_up(models: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "config.pbtxt").write_text(CONFIG)
    ids, mask = models.triton_inputs(str(tmp_path / "1" / "model.pt"))
    assert (ids.name, ids.dtype, ids.dims) == ("ids__0", "int64", (7,))
    assert (mask.name, mask.dtype, mask.dims) == ("mask__1", "float32", (1, None))
    assert models.triton_inputs(str(tmp_path.parent / "elsewhere" / "1" / "model.pt")) is None


def test_triton_configuration_without_batching_starts_with_the_batch(
    models: ModuleType, shared: Path
) -> None:
    found = models.triton_inputs(str(shared / "fixtures/models/deeptau_inner/1/model.graphdef"))
    assert [spec.dims for spec in found] == [(1, 1, 86), (1, 1, 64), (1, 1, 38)]


def test_real_configurations_are_parsed(models: ModuleType, shared: Path) -> None:
    for path in sorted((shared / "fixtures/models").glob("*/config.pbtxt")):
        config = models.parse_pbtxt(path.read_text(), str(path))
        assert config["input"], path
        assert all("name" in entry and "dims" in entry for entry in config["input"])


@pytest.mark.parametrize("text", ["input [ {", "input [ { name: }", "name", "} x: 1 {"])
def test_a_damaged_configuration_is_refused(models: ModuleType, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.pbtxt").write_text(text)
    with pytest.raises(models.Refusal) as caught:
        models.triton_inputs(str(tmp_path / "model.pt"))
    assert str(tmp_path) in caught.value.message


def test_types_that_cannot_be_made_are_refused(models: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "config.pbtxt").write_text(CONFIG.replace("TYPE_INT64", "TYPE_STRING"))
    with pytest.raises(models.Refusal, match="TYPE_STRING"):
        models.triton_inputs(str(tmp_path / "model.pt"))


def test_unknown_models_and_files_of_other_backends_are_refused(
    models: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(models.Refusal, match="no model named 'resnet'"):
        models.model_file(spec_of(models, model="resnet"))
    (tmp_path / "m.onnx").touch()
    (tmp_path / "m.h5").touch()
    with pytest.raises(models.Refusal, match="is a model for --backend onnxruntime, not torch"):
        models.model_file(spec_of(models, model=str(tmp_path / "m.onnx")))
    with pytest.raises(models.Refusal, match=r"takes \.pt or \.pth or \.ts files"):
        models.model_file(spec_of(models, model=str(tmp_path / "m.h5")))


def test_shapes_name_the_arguments_or_follow_their_order(models: ModuleType) -> None:
    named = models.named_shapes(["a", "b"], {"b": (2,), "a": (1, 3)}, "m.pt")
    assert [(spec.name, spec.dims) for spec in named] == [("a", (1, 3)), ("b", (2,))]
    ordered = models.named_shapes(["argument_1", "argument_2"], {"x": (1,), "y": (2,)}, "m.pt")
    assert [spec.dims for spec in ordered] == [(1,), (2,)]
    with pytest.raises(models.Refusal) as caught:
        models.named_shapes(["a", "b"], {"a": (1,)}, "m.pt")
    assert "a, b" in caught.value.message
    assert "--shape b:d1,d2" in caught.value.hint


def test_the_cache_holds_whole_files_only(models: ModuleType, tmp_path: Path) -> None:
    def broken(path: str) -> None:
        Path(path).write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        models.cached(str(tmp_path / "c"), "m.onnx", broken)
    assert list((tmp_path / "c").iterdir()) == []
    made = models.cached(str(tmp_path / "c"), "m.onnx", lambda path: Path(path).write_text("whole"))
    assert Path(made).read_text() == "whole"
    assert models.cached(str(tmp_path / "c"), "m.onnx", broken) == made


def test_the_export_runs_without_tools_and_devices(models: ModuleType) -> None:
    hooks = Path(models.HERE).parents[1] / "hooks"
    quiet = models.quiet_environment(
        {
            "PATH": "/bin",
            "LD_PRELOAD": "x.so",
            "PROFHARNESS_LAYERS": "torch",
            "ROCP_TOOL_LIBRARIES": "y.so",
            "PYTHONPATH": f"{hooks}:/mine",
        }
    )
    assert quiet == {
        "PATH": "/bin",
        "PYTHONPATH": "/mine",
        "CUDA_VISIBLE_DEVICES": "",
        "HIP_VISIBLE_DEVICES": "",
    }


def test_a_failed_export_says_why(
    models: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failed = subprocess.CompletedProcess(
        [], 1, b"Traceback\nModuleNotFoundError: No module named 'torch'\n"
    )
    monkeypatch.setattr(models.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(models.Refusal, match="No module named 'torch'") as caught:
        models.built_in_file(spec_of(models, cache_dir=str(tmp_path)), "onnx")
    assert caught.value.code == 3
