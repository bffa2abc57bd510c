"""`view RUN` without --at: the trace opens at the window that the report judges."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
import pytest

from profharness.analysis.pictures.records import Pictures
from profharness.analysis.records import Summary
from profharness.cli.viewing.interest import window_of
from profharness.cli.viewing.link import DEFAULT_UI, Link, Spot
from profharness.report.page.html import render
from profharness.understand import report_run as understand
from profharness.understand.pictures import pictures_of
from tests.report.samples import command, cpu_scan
from tests.writers.rich.kineto_file import write_kineto

BASE = 1_795_000_000_000_000_000


def page_of(run: Summary, window: tuple[int, int] | None) -> str:
    return render(msgspec.structs.replace(run, pictures=Pictures(window=window)))


def test_the_page_states_the_window_and_view_finds_it(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(page_of(command(), (BASE, BASE + 1_000_000)))
    assert window_of(tmp_path) == (BASE - 200_000, BASE + 1_200_000)
    page.write_text(page_of(cpu_scan(), None))
    assert window_of(tmp_path) is None


@pytest.mark.parametrize("stated", ["9 3", "5 5", "-5 3", "1 9999999999999999999", "1 2 3", "a b"])
def test_a_window_that_is_none_is_not_shown(tmp_path: Path, stated: str) -> None:
    page = page_of(command(), (11, 22)).replace('"11 22"', f'"{stated}"')
    assert stated in page
    (tmp_path / "report.html").write_text(page)
    assert window_of(tmp_path) is None


def test_what_is_no_page_of_the_run_is_not_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    assert window_of(run) is None
    os.mkfifo(run / "report.html")
    assert window_of(run) is None
    (run / "report.html").unlink()
    (tmp_path / "other.html").write_text(page_of(command(), (11, 22)))
    (run / "report.html").symlink_to(tmp_path / "other.html")
    assert window_of(run) is None


def test_the_window_is_that_of_the_steps(tmp_path: Path) -> None:
    loaded = understand.load([write_kineto(tmp_path / "t.json")])
    pictures = pictures_of(loaded, understand.summarise(loaded))
    # from its mark to the end of the copy, the last work that it launched
    assert pictures.window == (BASE, BASE + 48_000)


def test_a_link_shows_the_window_and_selects_nothing() -> None:
    def told(link: Link) -> dict[str, list[str]]:
        return parse_qs(link.ui_url.partition("#!/?")[2])

    link = told(Link(DEFAULT_UI, 9001, "/x/m.pftrace", window=(100, 200)))
    assert (link["visStart"], link["visEnd"]) == (["100"], ["200"])
    assert not {"ts", "dur"} & set(link)
    spot = told(Link(DEFAULT_UI, 9001, "/x/m.pftrace", Spot(1_000_000, 100_000, "s"), (1, 2)))
    assert spot["visStart"] == ["980000"]
