"""The pages of all kinds of runs in a real browser, on small and large screens, in light and dark:
no complaint, no request, every section there, nothing wider than the screen.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profharness.cli import run_cli
from tests.browser import CHROMIUM, Browser, Page
from tests.cli.test_hostile_names import trace
from tests.conftest import shared_path
from tests.run_files import run_of
from tests.samples.keep import unpacked
from tests.variants import but_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (or chrome) on the PATH"),
    pytest.mark.xdist_group("browser"),
]

WIDTHS = (400, 1280, 1600)  # CSS pixels: a telephone, a laptop, a desk
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SECTIONS = """
[...document.querySelectorAll("nav a[href^='#']")].map(link => {
  const target = document.getElementById(link.getAttribute("href").slice(1));
  return [link.textContent, target === null ? 0 : target.getBoundingClientRect().height];
})
"""
DRAWN = """
(async () => {
  const end = Date.now() + 30000;
  for (const plot of document.querySelectorAll("[data-plot]")) {
    plot.scrollIntoView();
    while (plot.querySelector("svg, canvas") === null) {
      if (Date.now() > end) return plot.dataset.plot + " was never drawn";
      await new Promise(done => setTimeout(done, 20));
    }
  }
  window.scrollTo(0, 0);
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return document.documentElement.dataset.plots ?? "drawn 0";
})()
"""
"""Plots are drawn as they come near: each is gone to."""


def of_sample(name: str) -> Callable[[Path], list[str]]:
    return lambda folder: [str(unpacked(name, folder))]


def of_ranks(folder: Path) -> list[str]:
    return [str(run_of(folder / "ranks", ranks=8).root)]


def of_file(folder: Path) -> list[str]:
    path = folder / "trace.json"
    path.write_text(json.dumps(trace("gemm_kernel")))
    return [str(path)]


def recorded(name: str, folder: Path) -> Path:
    """A copy of a recorded trace, since a page is named by its file."""
    path = shared_path(f"fixtures/kineto/{name}.json.gz")
    if not path.is_file():
        pytest.skip(f"needs the shared recorded files ({path} is absent)")
    return Path(shutil.copy(path, folder))


def of_two(folder: Path) -> list[str]:
    two = [str(unpacked(name, folder)) for name in ("0.1-scan-torch", "0.1-first-scan-torch")]
    return [*two, "--compare"]


def of_gpu_trace(folder: Path) -> list[str]:
    return [str(recorded("mi300x_timesformer", folder))]


def of_two_gpu_traces(folder: Path) -> list[str]:
    """Their kernels have names of hundreds of letters."""
    return [str(recorded(f"{name}_bert_small", folder)) for name in ("mi300x", "h100")] + [
        "--compare"
    ]


def of_folder(folder: Path) -> list[str]:
    """The index of several runs."""
    for name in ("0.1-scan-torch", "0.1-served", "0.1-command"):
        unpacked(name, folder / "runs")
    return ["index", str(folder / "runs")]


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "a scan": of_sample("0.1-scan-torch"),
    "a served scan": of_sample("0.1-served"),
    "a command": of_sample("0.1-command"),
    "eight ranks": of_ranks,
    "a trace file": of_file,
    "a comparison": of_two,
    "a GPU trace": of_gpu_trace,
    "two GPU traces": of_two_gpu_traces,
    "a folder of runs": of_folder,
}


ALWAYS = ("a scan", "eight ranks", "a comparison")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    one = browser.page()
    yield one
    one.call("Page.close")


@pytest.fixture(scope="module", params=but_for(KINDS, ALWAYS.__contains__))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("page")
    out = folder / "page.html"
    words = KINDS[request.param](folder)
    command = words if words[0] == "index" else ["report", *words]
    assert run_cli([*command, "-o", str(out)]) == 0
    return out


def opened(tab: Page, page: Path, width: int, *, dark: bool = False) -> None:
    tab.look(width, dark=dark)
    tab.open(page.as_uri())


def check(tab: Page) -> None:
    number = tab.run("document.querySelectorAll('[data-plot]').length")
    assert tab.run(DRAWN) == f"drawn {number}"
    assert tab.complaints() == []
    assert tab.requests() == []
    assert tab.run("document.documentElement.dataset.errors ?? ''") == ""
    assert tab.run(SIDEWAYS) == 0


def test_the_page_stands_on_every_screen(page: Path, tab: Page) -> None:
    for width in WIDTHS:
        opened(tab, page, width)
        assert tab.run("window.innerWidth") == width
        check(tab)


def test_the_page_follows_the_users_colours_and_width(page: Path, tab: Page) -> None:
    """What is open changes with its screen, as when a telephone is turned or night falls."""
    opened(tab, page, 400, dark=True)
    grounds = []
    for width, dark in ((400, True), (1280, False), (1600, True), (400, False)):
        tab.look(width, dark=dark)
        check(tab)
        grounds.append(tab.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] == grounds[2] != grounds[1] == grounds[3]


def test_every_section_that_is_named_is_there(page: Path, tab: Page) -> None:
    opened(tab, page, 1280)
    sections = tab.run(SECTIONS)
    headings = 1 if "index" in tab.run("document.querySelector('.brand').textContent") else 2
    assert len(sections) >= 3 or tab.run("document.querySelectorAll('h2').length") >= headings
    assert [name for name, height in sections if height < 20] == []
    assert tab.run("document.querySelector('h1').textContent.trim()")


def test_the_browser_tells_what_a_page_does_wrong(tmp_path: Path, tab: Page) -> None:
    """The checks above see what they look for."""
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        "<html data-plots='drawn 0'><body><img src='missing.png'><script>"
        "console.error('said'); setTimeout(() => { throw new Error('thrown'); }, 0);"
        "</script><div style='width: 5000px'>wide</div></body></html>"
    )
    opened(tab, wrong, 400)
    assert tab.run(DRAWN) == "drawn 0"
    complaints = " ".join(tab.complaints())
    assert "said" in complaints
    assert "thrown" in complaints
    assert [one.rpartition("/")[2] for one in tab.requests()] == ["missing.png"]
    assert tab.run(SIDEWAYS) > 4_000
