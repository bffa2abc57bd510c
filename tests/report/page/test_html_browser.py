"""The report in a real browser: every plot is drawn, nothing fails, nothing is loaded, nothing
scrolls sideways.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from profharness.report.page.html import render
from tests.report.samples import SAMPLES, gpu_hotspots

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
PROBE = """
window.addEventListener("load", function () {
  setTimeout(function () {
    var root = document.documentElement;
    root.dataset.sideways = String(root.scrollWidth - root.clientWidth);
    var right = root.getBoundingClientRect().right + 1;
    root.dataset.beyond = String(Array.from(document.querySelectorAll("body *")).filter(function (one) {
      var box = one.getBoundingClientRect();
      return box.right > right && box.width > 0 && !one.closest(".scroll, svg, .hoverlayer");
    }).length);
    root.dataset.loaded = String(performance.getEntriesByType("resource").length);
    root.dataset.titles = String(document.querySelectorAll("[title]").length);
    var stops = document.querySelectorAll("table [tabindex='0']").length;
    root.dataset.stops = stops + " of " + document.querySelectorAll("table").length;
    var stop = document.querySelector("[data-tip]");
    if (stop) {
      stop.focus();
      root.dataset.shown = document.getElementById("tip").style.display;
    }
  }, 500);
});
"""
HOSTILE = (
    "<script>document.documentElement.dataset.ran = 'script';</script>",
    "<img src='data:,x' onerror=\"document.documentElement.dataset.ran = 'handler';\">",
    "<svg onload=\"document.documentElement.dataset.ran = 'svg';\"></svg>",
    "<iframe srcdoc=\"<script>parent.document.documentElement.dataset.ran = 'frame';</script>\"></iframe>",
    "<base href='https://example.org/'>",
)


def _probed(text: str) -> str:
    """The page with the probe, which its policy then lets run too."""
    allowed = b64encode(sha256(PROBE.encode()).digest()).decode()
    assert text.count("script-src '") == 1
    return text.replace("script-src '", f"script-src 'sha256-{allowed}' '").replace(
        "</body>", f"<script>{PROBE}</script></body>"
    )


def _opened(page: Path, folder: Path, width: int) -> dict[str, str]:
    """The data attributes of the root element after the page has run."""
    assert BROWSER is not None
    argv = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder}",
        f"--window-size={width},1400",
        "--virtual-time-budget=20000",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=280, check=True)
    opening = re.search(r"<html[^>]*>", done.stdout)
    assert opening is not None, done.stderr[-2000:]
    return dict(re.findall(r'data-(\w+)="([^"]*)"', opening[0]))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium (or chrome) on the PATH")
@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("gpu_scan", 1200),
        pytest.param("gpu_scan", 700, marks=pytest.mark.thorough),
        ("cpu_scan", 1200),
        ("command", 700),
        ("failing", 1200),
        ("empty", 700),
        ("odd_numbers", 700),
    ],
)
def test_the_report_draws_without_errors(name: str, width: int, tmp_path: Path) -> None:
    text = render(SAMPLES[name]())
    page = tmp_path / "report.html"
    page.write_text(_probed(text), encoding="utf-8")
    seen = _opened(page, tmp_path / "profile", width)
    assert "errors" not in seen
    assert seen["plots"] == f"drawn {len(re.findall('data-plot=', text))}"
    assert seen["sideways"] == "0"
    assert seen["loaded"] == "0"
    assert seen["titles"] == "0"
    stops, tables = (int(part) for part in seen["stops"].split(" of "))
    assert stops <= tables
    if name in {"gpu_scan", "cpu_scan"}:
        assert seen["shown"] == "block"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium (or chrome) on the PATH")
def test_on_a_narrow_screen_only_tables_reach_beyond_it_and_those_scroll(tmp_path: Path) -> None:
    """A browser's window has a least width, so the page itself is made as narrow as a telephone."""
    page = tmp_path / "report.html"
    page.write_text(
        _probed(render(SAMPLES["gpu_scan"]())).replace(
            "</head>", "<style>html { width: 380px; }</style></head>"
        ),
        encoding="utf-8",
    )
    seen = _opened(page, tmp_path / "profile", 500)
    assert seen["beyond"] == "0"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium (or chrome) on the PATH")
def test_what_a_hostile_name_brings_along_does_not_run(tmp_path: Path) -> None:
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
    page = tmp_path / "report.html"
    page.write_text(_probed(text.replace("<main", f"{''.join(HOSTILE)}<main")), encoding="utf-8")
    seen = _opened(page, tmp_path / "profile", 1200)
    assert "ran" not in seen
    assert seen["plots"] != "drawn 0"
    loose = text.replace("script-src '", "script-src 'unsafe-inline' '")
    page.write_text(
        re.sub(r"'sha256-[^']*'", "", loose).replace("<main", f"{HOSTILE[0]}<main"),
        encoding="utf-8",
    )
    assert _opened(page, tmp_path / "profile", 1200)["ran"] == "script"
