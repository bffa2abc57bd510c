from __future__ import annotations

import io
import json
import sys
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import profharness
from profharness.measure.progress import open_progress
from profharness.rundir.shown import screen

ANY = st.text(st.characters())
WITHOUT_SHAPE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def test_every_character_without_a_shape_is_escaped_and_no_ordinary_one() -> None:
    for code in range(0x110000):
        one = chr(code)
        if unicodedata.category(one) in WITHOUT_SHAPE and one not in "\t\n":
            assert screen.visible(one) != one, hex(code)
    for one in "aZ09 ~µ·±█…→日本語é\u0301\u2009\u202f\U0001f600\t\n":
        assert screen.visible(one) == one


@given(ANY)
def test_what_is_shown_holds_nothing_hidden_and_is_stable(text: str) -> None:
    shown = screen.visible(text)
    assert not any(unicodedata.category(one) in WITHOUT_SHAPE for one in shown if one not in "\t\n")
    assert screen.visible(shown) == shown
    assert "\n" not in screen.one_line(text)
    shown.encode()  # no half of a surrogate is left


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)))
def test_json_behind_the_door_says_what_it_said_before(value: object) -> None:
    out = io.StringIO()
    screen.Screen(out).write(json.dumps(value, ensure_ascii=False))
    assert json.loads(out.getvalue()) == value


@given(st.dictionaries(ANY, st.lists(ANY)))
def test_values_become_json_whatever_they_hold(value: dict[str, list[str]]) -> None:
    data = screen.encoded(value)
    assert screen.visible(data.decode()) == data.decode()
    read = msgspec.json.decode(data)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert read == value


def test_only_what_our_own_console_drew_keeps_its_colours() -> None:
    from rich.table import Table
    from rich.text import Text

    drawn = io.StringIO()
    table = Table(title="[red]title\x1b[31m")
    table.add_column("a\x9b31m")
    table.add_row(Text("\x1b]8;;http://x\x07link\x1b[0m", style="red"))
    table.add_row("[link=http://x]l[/link] and more than the others say")
    screen.console(drawn, 60, color=True).print(table, "[bold]plain[/bold] :smile:")
    text = drawn.getvalue()
    assert "\x1b[31m\\u001b]8;;http://x" in text  # our red, around the escaped name
    for name in (
        "[red]title\\u001b[31m",
        "[link=http://x]l[/link] and",
        "[bold]plain[/bold] :smile:",
    ):
        assert name in text
    assert "\x1b]" not in text
    assert "\x9b" not in text
    out = io.StringIO()
    door = screen.Screen(out)
    door.write(screen.Painted("\x1b[1mown\x1b[0m"))
    door.write("\x1b[1mforeign\x1b[0m")
    assert out.getvalue() == "\x1b[1mown\x1b[0m\\u001b[1mforeign\\u001b[0m"


def test_the_doors_stand_for_a_time_and_only_once(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with screen.guarded():
        with screen.guarded():
            print("a\x1b[2Jb")
        assert isinstance(sys.stdout, screen.Screen)
        print("c\u202ed", file=sys.stderr)
        screen.mention("one\ntwo")
        assert sys.stdout.isatty() is before[0].isatty()
        sys.stdout.writelines(["\x07", "e"])
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("a\\u001b[2Jb\n\\u0007e", "c\\u202ed\none\\ntwo\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_printed_above_a_live_display_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with screen.guarded():
        before = sys.stderr
        with open_progress(sys.stderr) as progress:
            progress.pass_started("bare\x1b[35m", 4)
            print("note\x1b[35mpink\x1b]8;;http://x\x07link", file=sys.stderr)
        assert sys.stderr is before
    text = terminal.getvalue()
    assert "note\\u001b[35mpink\\u001b]8;;http://x\\u0007link" in text
    assert "\x1b[35m" not in text.replace("\x1b[35m━", "")
    assert "\x1b]8" not in text


def test_a_stream_that_lacks_characters_gets_them_escaped() -> None:
    raw = io.BytesIO()
    door = screen.Screen(io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    door.write("5 µs \U0001f600 a\n")
    assert raw.getvalue() == b"5 \\u00b5s \\ud83d\\ude00 a\n"


def test_a_huge_name_is_cut_in_its_middle() -> None:
    shown = screen.one_line("a" * 3_000_000 + "b" * 5_000)
    assert len(shown) < screen.LONGEST + 100
    assert shown.startswith("aaa")
    assert shown.endswith("bbb")
    assert " 3001000 characters " in shown


@given(ANY | st.from_regex(r"\A'*[=+\-@\t\r\n'][ -~]*\Z"))
def test_a_cell_is_no_formula_and_says_what_it_said(text: str) -> None:
    cell = screen.as_cell(text)
    assert screen.from_cell(cell) == text
    if cell[:1] in ("=", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"):
        pytest.fail(f"{cell!r} is a formula")
    if cell[:1] in ("+", "-"):
        assert cell == "-" or float(cell) is not None


@pytest.mark.parametrize("number", ["-1.5", "+3", "-1e-9", "-.5", "-inf", "-", "12", ""])
def test_numbers_stay(number: str) -> None:
    assert screen.as_cell(number) == number


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "-cmd|'/c calc'!A1", "@SUM(A1)", "'=1", "－1"]
)
def test_formulas_get_an_apostrophe(text: str) -> None:
    assert screen.as_cell(text) == "'" + text


def test_nothing_else_writes_to_the_screen() -> None:
    """Consoles come from one place, and what is drawn is marked in the few places that draw."""
    package = Path(profharness.__file__).parent
    texts = {
        path.relative_to(package).as_posix(): path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
        if path.name != "screen.py"
    }
    assert not [name for name, text in texts.items() if "import Console\n" in text]
    assert not [name for name, text in texts.items() if "err=True" in text]
    assert not [
        name for name, text in texts.items() if "sys.__std" in text or "stdout.buffer" in text
    ]
    assert sorted(name for name, text in texts.items() if "Painted(" in text) == [
        "cli/__init__.py",
        "cli/running/answers.py",
        "cli/sharing/many.py",
        "report/text/terminal.py",
    ]
