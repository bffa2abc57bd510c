"""The notebooks of the documents run from their first cell to their last, and hold no outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.needs import packages
from tests.variants import but_for

packages("nbclient", "nbformat", "ipykernel", "torch", "matplotlib", "mplhep")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path):
    import nbformat

    nbformat.validate(nbformat.read(path, as_version=4))
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    but_for(NOTEBOOKS, lambda path: path.stem == "a-trace-from-a-colleague"),
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_and_shows_what_it_says(
    path: Path, tmp_path: Path, model_cache: Path, monkeypatch
):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PROFHARNESS_CACHE", str(model_cache))
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {
        kind
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        for kind in output.get("data", {})
    }
    assert "text/html" in shown
    if "plot(" in path.read_text(encoding="utf-8"):
        assert "image/png" in shown


def test_there_are_three():
    assert len(NOTEBOOKS) == 3
