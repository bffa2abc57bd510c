"""The pictures in a real browser: each is drawn without a word of complaint, and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profharness.report.page.html import render
from profharness.report.pictures.sections import pictures_by_section
from tests.browser import CHROMIUM, Browser, Page
from tests.report.pictures.full import full

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (or chrome) on the PATH"),
]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def opened(chromium: Browser, folder: Path, width: int, *, several: bool, dark: bool) -> Page:
    summary = full(several=several)
    page = folder / "report.html"
    text = render(summary)
    page.write_text(text, encoding="utf-8")
    for plots in pictures_by_section(summary).values():
        for plot in plots:
            assert f'data-plot="{plot.name}"' in text
    tab = chromium.page()
    tab.look(width, dark=dark)
    tab.open(page.as_uri())
    tab.run("profharness.drawAll()")
    return tab


@pytest.mark.parametrize(
    ("width", "several", "dark"), [(1280, False, False), (400, True, True)], ids=["wide", "narrow"]
)
def test_every_picture_is_drawn_without_complaint(
    chromium: Browser, tmp_path: Path, width: int, *, several: bool, dark: bool
) -> None:
    sections = pictures_by_section(full(several=several))
    assert all(sections.values()), [name for name, plots in sections.items() if not plots]
    tab = opened(chromium, tmp_path, width, several=several, dark=dark)
    assert tab.complaints() == []
    data = tab.run("({...document.documentElement.dataset})")
    assert "errors" not in data
    plots = tab.run("document.querySelectorAll('.plot').length")
    assert data["plots"] == f"drawn {plots}"
    empty = """Array.from(document.querySelectorAll(".plot")).filter(
      one => one.querySelectorAll("svg path").length < 2).map(one => one.dataset.plot)"""
    assert tab.run(empty) == []
    assert tab.requests() == []


def flame_texts(tab: Page) -> list[str]:
    read: list[str] = tab.run(
        """Array.from(document.querySelectorAll('[data-plot="flame-module"] svg text'))
          .map(one => one.textContent)"""
    )
    return read


def click(tab: Page, text: str) -> None:
    box: dict[str, Any] = tab.run(
        f"""(() => {{
          const all = document.querySelectorAll('[data-plot="flame-module"] svg text');
          const one = Array.from(all).find(one => one.textContent === {text!r});
          one.scrollIntoView({{block: "center"}});
          const box = one.getBoundingClientRect();
          return {{x: box.x + box.width / 2, y: box.y + box.height / 2}};
        }})()"""
    )
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        tab.call(
            "Input.dispatchMouseEvent", type=kind, **box, button="left", clickCount=1, buttons=1
        )


def test_a_flame_graph_zooms_by_click_searches_and_shows_all_again(
    chromium: Browser, tmp_path: Path
) -> None:
    tab = opened(chromium, tmp_path, 1280, several=False, dark=False)
    assert {"Model_0", "Linear_0", "Linear_3"} <= set(flame_texts(tab))
    click(tab, "Linear_2")
    assert "Linear_2" in flame_texts(tab)
    assert "Linear_3" not in flame_texts(tab)
    search = """(() => {
      const bar = document.querySelector('[data-plot="flame-module"]').parentNode;
      const input = bar.querySelector("input");
      input.value = "LINEAR_3";
      input.dispatchEvent(new Event("input"));
      return bar.querySelector("output").textContent;
    })()"""
    assert tab.run(search).split() == ["40.0", "%", "of", "the", "time"]
    tab.run(
        """document.querySelector('[data-plot="flame-module"]').parentNode
          .querySelector(".flamebar button").click()"""
    )
    assert "Linear_3" in flame_texts(tab)
    assert tab.complaints() == []


def test_what_stands_under_the_pointer_says_kind_and_time(
    chromium: Browser, tmp_path: Path
) -> None:
    tab = opened(chromium, tmp_path, 1280, several=False, dark=False)
    box: dict[str, Any] = tab.run(
        """(() => {
          const holder = document.querySelector('[data-plot="strip"]');
          holder.scrollIntoView({block: "center"});
          const all = Array.from(holder.querySelectorAll("svg path"));
          const one = all.find(one => one.getAttribute("fill") === "#0f8b8d"
            && one.getBoundingClientRect().width > 50);
          const box = one.getBoundingClientRect();
          return {x: box.x + box.width / 2, y: box.y + box.height / 2};
        })()"""
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", **box)
    said = tab.run(
        """Array.from(document.querySelectorAll('[data-plot="strip"] svg text'))
          .map(one => one.textContent).join(" ")"""
    )
    assert re.search(r"compute.*100\s*ns, from 0", said), said
