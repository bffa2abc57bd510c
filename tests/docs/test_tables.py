"""The tables that documents take from the code are those of the code as it is."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_table_is_stale(tables: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tables.main(["--check"]) == 0, capsys.readouterr().out


def test_each_table_stands_in_a_document(tables: ModuleType) -> None:
    texts = "".join((ROOT / name).read_text(encoding="utf-8") for name in tables.DOCUMENTS)
    for name in tables.TABLES:
        assert f"<!-- table {name} -->" in texts


def test_a_stale_table_is_renewed(tables: ModuleType) -> None:
    old = "a\n<!-- table layers -->\n| old |\n<!-- end of table -->\nb\n"
    new = tables.renewed(old)
    assert "| `rocprofv3` | kernels" in new
    assert "old" not in new
    assert new.startswith("a\n")
    assert new.endswith("\nb\n")


def test_files_and_names_of_the_families_are_there() -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:profharness|tests|docs)/[\w/.-]+)`", text):
        assert "NAME" in path or (ROOT / path).exists(), path
    for name, path in re.findall(r"`([A-Z]+)` in `([\w/.]+)`", text):
        assert re.search(rf"^{name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
