"""The report in a real browser: every plot is drawn, nothing fails, nothing is loaded, nothing
scrolls sideways.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from profharness.analysis.records import Summary
from profharness.report.page.html import HOTSPOTS_FIRST, SIZE_LIMIT, render
from tests.browser import ALONE, CHROMIUM, Browser, Page
from tests.report.samples import SAMPLES, gpu_hotspots

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (or chrome) on the PATH"),
]
HOSTILE = (
    "<script>document.documentElement.dataset.ran = 'script';</script>",
    "<img src='data:,x' onerror=\"document.documentElement.dataset.ran = 'handler';\">",
    "<svg onload=\"document.documentElement.dataset.ran = 'svg';\"></svg>",
    "<iframe srcdoc=\"<script>parent.document.documentElement.dataset.ran = 'frame';</script>\"></iframe>",
    "<base href='https://example.org/'>",
    "<style>h1 { color: rgb(1, 2, 3) !important; }</style>",
    "<p style='color: rgb(1, 2, 3)' id='painted'>x</p>",
)
BEYOND = """(() => {
  const right = document.documentElement.getBoundingClientRect().right + 1;
  return Array.from(document.querySelectorAll("body *")).filter(one => {
    const box = one.getBoundingClientRect();
    return box.right > right && box.width > 0 && !one.closest(".scroll, svg");
  }).map(one => one.tagName + "." + one.className);
})()"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def tab(chromium: Browser) -> Page:
    return chromium.page()


def _open(tab: Page, text: str, folder: Path, width: int, *, dark: bool = False) -> None:
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    tab.look(width, dark=dark)
    tab.open(page.as_uri())


def _data(tab: Page) -> dict[str, str]:
    return tab.run("({...document.documentElement.dataset})")


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("gpu_scan", 1280, False),
        ("gpu_scan", 400, False),
        ("gpu_scan", 1600, True),
        ("cpu_scan", 1280, False),
        ("command", 400, True),
        ("failing", 1280, False),
        ("empty", 400, False),
        ("odd_numbers", 400, False),
    ],
)
def test_the_report_draws_without_errors(
    name: str, width: int, dark: bool, tab: Page, tmp_path: Path
) -> None:
    text = render(SAMPLES[name]())
    _open(tab, text, tmp_path, width, dark=dark)
    tab.run("profharness.drawAll()")
    seen = _data(tab)
    assert "errors" not in seen
    assert seen["plots"] == f"drawn {len(re.findall('data-plot=', text))}"
    assert tab.complaints() == []
    assert tab.requests() == []
    assert tab.run("innerWidth") == width
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.run(BEYOND) == []
    assert tab.run("document.querySelectorAll('[title]').length") == 0
    assert tab.run("document.querySelectorAll('.plot svg text').length > 0") == (
        "data-plot=" in text
    )
    for table in tab.run(
        "[...document.querySelectorAll('table')]"
        ".map(one => one.querySelectorAll('[tabindex=\"0\"]').length)"
    ):
        assert table <= 1


def test_plots_are_drawn_as_they_come_near_and_all_before_printing(
    tab: Page, tmp_path: Path
) -> None:
    _open(tab, render(SAMPLES["gpu_scan"]()), tmp_path, 1280)
    number = tab.run("document.querySelectorAll('.plot').length")
    assert int(_data(tab)["plots"].split()[1]) < number
    tab.call("Page.printToPDF")
    assert _data(tab)["plots"] == f"drawn {number}"
    assert "errors" not in _data(tab)


def test_plots_are_whole_on_paper_and_as_before_after_it(tab: Page, tmp_path: Path) -> None:
    _open(tab, render(SAMPLES["gpu_scan"]()), tmp_path, 1280)
    tab.run("profharness.drawAll()")
    shapes = """[...document.querySelectorAll('.plot svg')].map(one =>
      [one.getAttribute('viewBox'), Number(one.getAttribute('width'))])"""
    before = tab.run(shapes)
    assert {box for box, _ in before} == {None}
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert {(box.split()[2], width) for box, width in tab.run(shapes)} == {("680", 680)}
    tab.look(700, media="print")
    tall_and_wide = """[...document.querySelectorAll('.plot svg')].every(one => {
      const box = one.getBoundingClientRect(), around = one.closest('section').getBoundingClientRect();
      return box.width > 0 && box.right <= around.right + 1; })"""
    assert tab.run(tall_and_wide)
    tab.look(1280)
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run(shapes) == before
    assert "errors" not in _data(tab)


def test_one_picture_right_after_loading_shows_the_plots_in_sight(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    assert CHROMIUM is not None
    page, picture = tmp_path / "report.html", tmp_path / "page.png"
    page.write_text(render(SAMPLES["gpu_scan"]()), encoding="utf-8")
    argv = [CHROMIUM, "--headless=new", *ALONE, f"--user-data-dir={tmp_path / 'profile'}"]
    argv += ["--window-size=1280,3000", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    with image.open(picture) as taken:
        colours = {colour for _, colour in taken.convert("RGB").getcolors(1 << 24)}
    assert (0xD1, 0x49, 0x5B) in colours  # a series of the plot of throughput


def test_lines_end_between_no_number_and_its_unit_and_letters_stay(
    tab: Page, tmp_path: Path
) -> None:
    words = (
        "idle 82.9 % of 1.2 ± 0.1 ms at 234 k items/s, 19\u2009583 jets/s of 5\u2009000: "
        "raise --warmup-time, not a-b in 5 runs"
    )
    text = render(SAMPLES["gpu_scan"]()).replace("<main", f"<p id='words'>{words}</p><main")
    _open(tab, text, tmp_path, 1280)
    held = tab.run("[...document.querySelectorAll('#words .held')].map(one => one.textContent)")
    assert held == [
        *("82.9 %", "± 0.1 ms", "234 k items/s", "19\u2009583 jets/s", "5\u2009000"),
        "--warmup-time",
    ]
    assert tab.run("document.getElementById('words').textContent") == words
    assert (
        tab.run("getComputedStyle(document.querySelector('#words .held')).whiteSpace") == "nowrap"
    )


def test_the_keyboard_reaches_where_a_figure_came_from(tab: Page, tmp_path: Path) -> None:
    _open(tab, render(SAMPLES["gpu_scan"]()), tmp_path, 1280)
    tab.run("document.querySelector('td [data-tip]').focus()")
    assert tab.run("document.getElementById('tip').style.display") == "block"
    assert "point torch-b4" in tab.run("document.getElementById('tip').textContent")


def test_the_text_under_the_pointer_is_drawn_and_breaks_no_rule(tab: Page, tmp_path: Path) -> None:
    _open(tab, render(SAMPLES["gpu_scan"]()), tmp_path, 1280)
    tab.run("document.getElementById('plot-throughput').scrollIntoView({block: 'center'})")
    tab.run("profharness.drawAll()")
    x, y = tab.run(
        """(() => {
          const color = "#d1495b";
          const dot = [...document.querySelectorAll("#plot-throughput path")]
            .filter(one => one.getAttribute("fill") === color)
            .map(one => one.getBoundingClientRect()).filter(box => box.width < 12)
            .sort((one, other) => one.x - other.x).pop();
          return [dot.x + dot.width / 2, dot.y + dot.height / 2];
        })()"""
    )
    for at in (x - 1, x):
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=at, y=y)
    shown = tab.run(
        "new Promise(done => setTimeout(() => done("
        "document.querySelector('#plot-throughput svg').textContent), 300))"
    )
    assert re.search(r"torch2.048: 25.\d\d\d jets/sfrom bare pass", shown)
    assert "errors" not in _data(tab)


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_a_plot_is_saved(kind: str, tab: Page, tmp_path: Path) -> None:
    _open(tab, render(SAMPLES["gpu_scan"]()), tmp_path, 1280, dark=True)
    tab.browser.call(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    tab.run("profharness.drawAll()")
    label = f"Save Throughput as {kind}"
    tab.run(f"document.querySelector('[aria-label=\"{label}\"]').click()")
    tab.wait_for("Page.downloadProgress", state="completed")
    saved = (tmp_path / f"throughput.{kind.lower()}").read_bytes()
    if kind == "SVG":
        text = saved.decode()
        assert ET.fromstring(text).tag.endswith("svg")
        assert "var(" not in text
        assert "throughput (jets/s)" in text
        assert "#171f25" in text  # the dark page's own background
    else:
        assert saved.startswith(b"\x89PNG")
    assert "errors" not in _data(tab)


def _big() -> Summary:
    """40 points and 2,000 kernels."""
    scan = SAMPLES["gpu_scan"]()
    (kernels, *others) = scan.hotspots
    rows = tuple(
        msgspec.structs.replace(
            kernels.rows[at % 7],
            name=f"void at::native::kernel_{at:04}<float, {at * 7919 % 10007}>(char*)",
            total_ns=10**9 - at * 1000,
            calls=1 + at * 7919 % 10007,
        )
        for at in range(2000)
    )
    points = tuple(
        msgspec.structs.replace(point, point=f"{point.point}{again}", backend=point.backend + again)
        for again in ("", "-again")
        for point in scan.points
    )
    hot = (msgspec.structs.replace(kernels, rows=rows), *others)
    return msgspec.structs.replace(scan, points=points, hotspots=hot)


LISTED = "[...document.querySelector('.hot').tBodies[0].rows].map(one => one.cells[{}].innerText)"
HEADING = "document.querySelectorAll('.hot')[0].querySelectorAll('button.sort')[{}].click()"
SEARCH = """(() => {{
  const field = document.querySelector("input[aria-label='Search in Kernels by total time']");
  field.value = "{}";
  field.dispatchEvent(new Event("input"));
}})()"""
SETTLED = "new Promise(done => setTimeout(done, 400))"


def test_two_thousand_kernels_are_searched_sorted_and_drawn_in_parts(
    tab: Page, tmp_path: Path
) -> None:
    text = render(_big())
    assert len(text.encode()) < SIZE_LIMIT
    _open(tab, text, tmp_path, 1280)
    assert len(tab.run(LISTED.format(0))) == HOTSPOTS_FIRST

    def after(act: str, column: int) -> list[str]:
        tab.run(act)
        tab.run(SETTLED)
        return tab.run(LISTED.format(column))

    (found,) = after(SEARCH.format("KERNEL_1987<"), 0)
    assert "kernel_1987<" in found
    (status, *_) = tab.run(
        "[...document.querySelectorAll('#hotspots .search [role=status]')].map(one => one.textContent)"
    )
    assert status == "1 of 2000 rows match"
    assert len(after(SEARCH.format(""), 0)) == HOTSPOTS_FIRST
    calls = after(HEADING.format(4), 4)
    ranked = sorted((1 + at * 7919 % 10007 for at in range(2000)), reverse=True)
    assert [int(re.sub(r"\D", "", one)) for one in calls] == ranked[:HOTSPOTS_FIRST]
    assert (
        tab.run("document.querySelectorAll('.hot th')[4].getAttribute('aria-sort')") == "descending"
    )
    assert [int(re.sub(r"\D", "", one)) for one in after(HEADING.format(4), 4)] == ranked[
        : -HOTSPOTS_FIRST - 1 : -1
    ]
    assert len(after("document.querySelector('#hotspots button.more').click()", 0)) == (
        HOTSPOTS_FIRST + 200
    )
    assert "errors" not in _data(tab)
    assert tab.complaints() == []


def test_durations_are_sorted_by_length_and_not_by_their_digits(tab: Page, tmp_path: Path) -> None:
    _open(tab, render(SAMPLES["gpu_scan"]()), tmp_path, 1280)
    column = tab.run(
        "[...document.querySelectorAll('.points th')].findIndex(one => one.innerText.includes('p50'))"
    )
    tab.run(f"document.querySelectorAll('.points th button')[{column}].click()")
    tab.run(SETTLED)
    shown = tab.run(
        f"[...document.querySelector('.points').tBodies[0].rows].map(one => one.cells[{column}].innerText)"
    )
    scale = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    pairs = [re.match(r"([\d.]+)\s*(\S+)", one) for one in shown]
    times = [float(pair[1]) * scale[pair[2]] for pair in pairs if pair]
    assert len(times) == 20
    assert times == sorted(times, reverse=True)


def test_a_command_is_copied(tab: Page, tmp_path: Path) -> None:
    _open(tab, render(SAMPLES["command"]()), tmp_path, 1280)
    tab.run("document.querySelector('.command button').click()")
    tab.run(SETTLED)
    assert tab.run("document.querySelector('.command button').textContent") in {
        "copied",
        "selected",
    }
    assert "errors" not in _data(tab)


def test_without_its_script_the_page_says_where_the_other_rows_are() -> None:
    text = render(_big())
    assert "1988 further rows are shown by the page's script" in text


def test_what_a_hostile_name_brings_along_does_not_run(tab: Page, tmp_path: Path) -> None:
    """Names are escaped as text. Were one not, the policy would still not let it run: it is put
    into the page as it is.
    """
    table = gpu_hotspots()
    row = msgspec.structs.replace(table.rows[0], name="".join(HOSTILE))
    summary = msgspec.structs.replace(
        SAMPLES["gpu_scan"](), hotspots=(msgspec.structs.replace(table, rows=(row,)),)
    )
    text = render(summary)
    assert "&lt;iframe srcdoc=" in text
    colour = "getComputedStyle(document.querySelector('{}')).color"
    _open(tab, text.replace("<main", f"{''.join(HOSTILE)}<main"), tmp_path, 1280)
    tab.run("profharness.drawAll()")
    assert "ran" not in _data(tab)
    assert _data(tab)["plots"] != "drawn 0"
    for painted in ("h1", "#painted"):
        assert tab.run(colour.format(painted)) != "rgb(1, 2, 3)"
    loose = re.sub(r"'sha256-[^']*'", "'unsafe-inline'", text)
    _open(tab, loose.replace("<main", f"{''.join(HOSTILE)}<main"), tmp_path, 1280)
    assert "ran" in _data(tab)
    for painted in ("h1", "#painted"):
        assert tab.run(colour.format(painted)) == "rgb(1, 2, 3)"
