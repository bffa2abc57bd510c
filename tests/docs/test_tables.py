"""The tables that documents take from the code are those of the code as it is."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MAPS = ("docs/architecture.md", "docs/extending.md", "CONTRIBUTING.md", "README.md")


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
    for name in tables.TEXTS:
        assert f"<!-- text {name} -->" in texts


def test_a_stale_table_is_renewed(tables: ModuleType) -> None:
    old = "a\n<!-- table layers -->\n| old |\n<!-- end of table -->\nb\n"
    new = tables.renewed(old)
    assert "| `rocprofv3` | kernels" in new
    assert "old" not in new
    assert new.startswith("a\n")
    assert new.endswith("\nb\n")


def test_a_stale_text_is_renewed(tables: ModuleType) -> None:
    """Each command stands there with its options as the help has them."""
    new = tables.renewed("a\n<!-- text commands -->\nwas here\n<!-- end of text -->\nb\n")
    assert "was here" not in new
    assert new.endswith("\n<!-- end of text -->\nb\n")
    assert "\n## compare\n" in new
    assert "| <code>--fail-on EXPR</code> | Exit with 1 when" in new
    assert "| <code>RUN&#124;CSV</code> | Run directory" in new
    assert "$ profharness attach 4711 --for 1min  # telemetry alone: of any process\n" in new


def test_every_document_of_the_list_exists_once(tables: ModuleType) -> None:
    marked = {
        path.relative_to(ROOT).as_posix()
        for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
        if re.search(r"^<!-- (?:table|text) \w+ -->$", path.read_text("utf-8"), re.MULTILINE)
    }
    assert marked == set(tables.DOCUMENTS)


def test_every_folder_is_in_a_table(tables: ModuleType) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w/]+)/` \| ", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert sorted(listed) == sorted(
        {
            path.parent.relative_to(ROOT).as_posix()
            for top in ("profharness", "wrappers")
            for path in (ROOT / top).glob("**/*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        - {"profharness"}
    )


@pytest.mark.parametrize("name", MAPS)
def test_files_that_a_document_names_are_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:profharness|wrappers|tests|docs|benchmarks)/[\w/.-]+)`", text):
        assert "NAME" in path or (ROOT / path).exists(), path


@pytest.mark.parametrize("name", MAPS)
def test_what_a_document_says_of_a_file_is_in_it(name: str) -> None:
    """`name` in `file`, or `name` (`file`): the file defines it."""
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    path = r"`((?:profharness|wrappers)/[\w/]+\.py)`"
    for names, file in re.findall(rf"`([\w.]+)` (?:in |of |\(|\(in ){path}", text):
        code = (ROOT / file).read_text(encoding="utf-8")
        for one in names.split("."):
            assert re.search(rf"^ *(?:def |class )?{one}\b *[(:=]", code, re.MULTILINE), (one, file)
