"""Which file of a Triton repository `--model` means."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness import scans
from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.serving import repository
from profharness.serving.model_folder import model_file

CONFIG = 'platform: "pytorch_libtorch"\ninput [ { name: "x" data_type: TYPE_FP32 dims: [4] } ]\n'


def model(folder: Path, name: str, *files: str, config: str = CONFIG) -> Path:
    for file in files:
        (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / file).touch()
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "config.pbtxt").write_text(config)
    return folder / name


def test_the_newest_version_is_meant_by_each_way_to_name_it(tmp_path: Path) -> None:
    tagger = model(tmp_path, "tagger", "2/model.pt", "10/model.pt", "11/notes.txt")
    newest = str(tagger / "10/model.pt")
    for named in (tmp_path, tagger, tagger / "config.pbtxt"):
        assert model_file(str(named)) == newest
    assert model_file(str(tagger / "2")) == str(tagger / "2/model.pt")
    assert model_file(newest) == newest


def test_the_configuration_may_name_the_file(tmp_path: Path) -> None:
    named = model(
        tmp_path,
        "m",
        *("1/model.pt", "1/best.pt"),
        config=CONFIG + 'default_model_filename: "best.pt"\n',
    )
    assert model_file(str(named)) == str(named / "1/best.pt")


def test_what_is_no_repository_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/saved_model.pb").touch()
    for text in ("particlenet", "/nowhere/m.pt", str(tmp_path / "saved"), "sleep:20ms"):
        assert model_file(text) == text


def test_several_models_and_none_are_refused_with_the_way_out(tmp_path: Path) -> None:
    model(tmp_path, "python", "1/model.py")
    with pytest.raises(UsageError, match=r"no version of .*/python holds a file") as refused:
        model_file(str(tmp_path))
    assert "VERSION/model.pt" in refused.value.hint
    model(tmp_path, "tagger", "1/model.pt")
    with pytest.raises(UsageError, match="is a repository of 2 models") as refused:
        model_file(str(tmp_path))
    assert str(tmp_path / "tagger") in refused.value.hint


@pytest.mark.parametrize("more", [{}, {"via": "triton"}, {"streams": "1"}])
def test_every_scan_takes_it(tmp_path: Path, more: dict[str, object]) -> None:
    tagger = model(tmp_path, "tagger", "1/model.pt")
    asked = from_mapping({"model": str(tagger), **more}, COMMAND_LINE)
    scan = scans.create(asked, Environment(cpus_allowed=(0,)))
    assert scan.backends == ("torch",)
    spec = scan.server("torch")
    worker = spec.worker if spec is not None else scan.workload("torch")
    assert worker is not None
    assert worker.settings["model"] == str(tagger / "1/model.pt")


def test_two_models_of_a_repository_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    names = [
        str(model(tmp_path, "tagger", "1/model.pt") / "config.pbtxt"),
        str(model(tmp_path, "met", "1/model.onnx")),
    ]
    asked = from_mapping({"model": ",".join(names), "via": "triton"}, COMMAND_LINE)
    scan = scans.create(asked, Environment(cpus_allowed=(0,)))
    assert scan.backends == ("torch@tagger", "onnxruntime@met")


def test_a_name_on_a_server_of_anothers_is_no_folder_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model(tmp_path, "m", "1/model.py")
    monkeypatch.chdir(tmp_path)
    asked = from_mapping({"model": "m", "url": "localhost:8001"}, COMMAND_LINE)
    assert scans.create(asked, Environment(cpus_allowed=(0,))).backends == ("server",)


def test_a_configuration_is_read_once_for_all_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.pbtxt").write_text('name: "m"')
    for number in range(1, 20):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "1" / "model.pt").touch()
    asked = []
    read = repository.read
    monkeypatch.setattr(repository, "read", lambda path: asked.append(path) or read(path))
    assert model_file(str(tmp_path)) == str(tmp_path / "1" / "model.pt")
    assert len(asked) == 1
