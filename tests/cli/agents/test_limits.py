"""What an agent gets to read is bounded, and what is not there to serve it is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.cli.agents.limits import MOST_BYTES, answer_bytes, cut
from profharness.cli.agents.records import ListedRun, Plan, RunList
from profharness.cli.agents.roots import roots_of
from profharness.errors import UsageError


@pytest.mark.parametrize("length", [0, 1, 199, 200, 201, 239, 240, 241, 5_000])
def test_a_name_is_cut_in_its_middle(length: int) -> None:
    name = "".join(chr(ord("a") + at % 26) for at in range(length))
    shown = cut(name, 240)
    assert len(shown) <= 240
    assert (
        shown == name
        if length <= 240
        else (name[:100], name[-100:])
        == (
            shown[:100],
            shown[-100:],
        )
    )


def test_what_grows_by_escaping_is_cut_all_the_same() -> None:
    assert len(cut("\x1b" * 240, 240)) <= 240
    assert cut("a\nb", 240) == "a\\nb"


def test_an_answer_that_is_too_long_says_what_to_ask_for() -> None:
    runs = tuple(
        ListedRun(path="p" * 240, state="done", layers=("l" * 240,) * 20) for _ in range(200)
    )
    with pytest.raises(UsageError, match=f"and {MOST_BYTES} is the most") as told:
        answer_bytes(
            RunList(
                folders=(),
                runs=runs,
                runs_left_out=0,
                trace_files=(),
                trace_files_left_out=0,
            )
        )
    assert "ask for fewer rows" in told.value.hint


def test_a_plan_keeps_its_lines_and_tells_how_many_are_left_out() -> None:
    lines = "".join(f"line {number}\n" for number in range(4_000))
    data = answer_bytes(Plan(command=("profharness",), plan=lines)).decode()
    kept = data.count("\\nline ") + 1
    assert 1_000 < kept < 4_000
    assert f"# ... {4_000 - kept} further lines are left out" in data


def test_the_folder_itself_is_inside(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    roots = roots_of([tmp_path / "a"])
    assert roots.find(".") == (tmp_path / "a").resolve()
    with pytest.raises(UsageError):
        roots.find("../ab")  # a name that only begins like the root's
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a" / "loop")
    with pytest.raises((UsageError, Exception), match="loop"):
        roots.find("loop")


def test_a_file_below_another_root_is_found(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "file").touch()
    roots = roots_of([tmp_path / "a", tmp_path / "b"])
    assert roots.find("file") == (tmp_path / "b" / "file").resolve()


def test_a_root_must_be_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["mcp", "--root", str(tmp_path / "none")]) == 4
    assert "there is no such folder" in capsys.readouterr().err


def test_the_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.delitem(sys.modules, "profharness.cli.agents.server", raising=False)
    assert run_cli(["mcp"]) == 3
    assert "pip install 'profharness[mcp]'" in capsys.readouterr().err
