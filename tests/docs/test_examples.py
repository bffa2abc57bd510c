"""The Python examples of the documents run as they stand, in a folder that holds the run they name."""

from __future__ import annotations

import importlib.util
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.needs import TORCH_HERE
from tests.run_files import run_of

FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(name: str, heading: str = "") -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    section = text.partition(heading)[2].partition("\n## ")[0] if heading else text
    found = FENCE.findall(section)
    assert found, f"{name} holds no example"
    return "\n".join(found)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "traces").mkdir()
    run_of(folder / "traces" / "demo", ranks=2)
    return folder


@pytest.mark.parametrize(
    ("name", "heading", "frames"),
    [
        ("docs/frames.md", "", ("kernels", "cores", "points")),
        ("README.md", "## From Python\n", ("kernels", "table", "points")),
    ],
)
def test_the_examples_of_tables_run(
    name: str,
    heading: str,
    frames: tuple[str, ...],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(home)
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        exec(compile(examples(name, heading), name, "exec"), made)
    for frame in frames:
        assert len(made[frame]), frame


@pytest.mark.slow
@TORCH_HERE
def test_the_examples_of_the_objects_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "matplotlib"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}")
    monkeypatch.chdir(home)
    made: dict[str, Any] = {}
    exec(compile(examples("docs/python.md"), "docs/python.md", "exec"), made)
    for frame in ("table", "measured", "missing", "points", "busy", "longest", "cores"):
        assert len(made[frame]), frame
    assert "aten::linear" in made["operators"]["name"].tolist()
    assert (home / "hotspots.png").stat().st_size
