"""Where there are no recorded files the tests that reach them skip, and one that does not ask is
found (`make without-recorded`).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.tools.without_recorded import main, reaching

CONFTEST = """
from pathlib import Path
import pytest
SHARED = Path(__file__).parents[2] / "{folder}"
def shared_path(relative):
    return SHARED / relative
@pytest.fixture
def shared():
    if not SHARED.is_dir():
        pytest.skip("needs recorded files")
    return SHARED
@pytest.fixture
def text(shared):
    return (shared / "file").read_text()
"""
HELPER = """
from tests import conftest
FILE = conftest.shared_path("file")
def read():
    return FILE.read_text()
def plain():
    return ""
"""
ASKS = """
import pytest
def test_by_fixture(shared):
    assert (shared / "file").read_text() == "recorded"
def test_by_a_fixture_of_it(text):
    assert text == "recorded"
@pytest.mark.usefixtures("shared")
def test_by_mark():
    pass
def of(shared):
    return not shared
def test_alone():
    text = of(False)
    assert text
"""
DOES_NOT = """
from tests import helper
from tests.helper import plain, read as taken
def test_by_a_function():
    assert taken() == "recorded"
class TestOfModule:
    def test_by_module(self):
        assert helper.FILE.read_text() == "recorded"
def test_alone():
    assert plain() == ""
"""
OWN_WAY = """
from pathlib import Path
FILE = Path(__file__).parents[2] / "{folder}" / "file"
def test_by_a_path():
    assert FILE.read_text() == "recorded"
def test_in_its_folder(tmp_path):
    (tmp_path / "{folder}").mkdir()
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    files = {
        "__init__": "",
        "conftest": CONFTEST.format(folder="shared"),
        "helper": HELPER,
        "test_asks": ASKS,
    }
    (root / "tests").mkdir(parents=True)
    for name, text in files.items():
        (root / f"tests/{name}.py").write_text(text)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/file").write_text("recorded")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def test_tests_that_reach_them_are_found_however_far_away(checkout: Path) -> None:
    (checkout / "tests/test_does_not.py").write_text(DOES_NOT)
    assert reaching(checkout) == [
        "tests/test_asks.py::test_by_fixture",
        "tests/test_asks.py::test_by_a_fixture_of_it",
        "tests/test_asks.py::test_by_mark",
        "tests/test_does_not.py::test_by_a_function",
        "tests/test_does_not.py::TestOfModule",
    ]
    (checkout / "tests/test_does_not.py").write_text(OWN_WAY.format(folder="shared"))
    assert reaching(checkout)[3:] == ["tests/test_does_not.py::test_by_a_path"]


@pytest.mark.parametrize(
    "all_of_it",
    [
        "from tests.helper import read\nassert read() or True\ndef test_one():\n    pass\n",
        (
            "import pytest\n@pytest.fixture(autouse=True)\ndef before(shared):\n    pass\n"
            "def test_one():\n    pass\n"
        ),
    ],
    ids=["a statement", "a fixture that all use"],
)
def test_a_file_that_reaches_them_as_a_whole_is_one(checkout: Path, all_of_it: str) -> None:
    (checkout / "tests/test_all.py").write_text(all_of_it)
    assert "tests/test_all.py" in reaching(checkout)


@pytest.mark.slow
def test_one_that_does_not_ask_fails_where_there_are_none(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["-q"], checkout) == 0
    assert "3 skipped" in capfd.readouterr().out
    (checkout / "tests/test_does_not.py").write_text(DOES_NOT)
    assert main(["-q"], checkout) == 1
    assert "2 failed, 3 skipped" in capfd.readouterr().out


def test_only_one_place_says_where_they_lie(repository: Path) -> None:
    """What finds the tests that reach them knows that place alone."""
    own_way = re.compile(
        r"(parents?(\[\d\])?|ROOT|repository)\)* / .shared|\.\./shared/|PROFHARNESS_SHARED"
    )
    held = {
        str(path.relative_to(repository))
        for path in (repository / "tests").rglob("*.py")
        if own_way.search(path.read_text())
    }
    assert held == {
        "tests/conftest.py",
        "tests/tools/without_recorded.py",
        str(Path(__file__).relative_to(repository)),
    }
