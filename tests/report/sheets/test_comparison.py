"""The page of a comparison, and `report --compare` as a user calls it."""

from __future__ import annotations

import html
import json
import re

import msgspec
import pytest

from profharness.analysis.compare.runs import compare
from profharness.cli import run_cli
from profharness.report.sheets.comparison import render
from profharness.report.text.comparison import answer
from tests.cli.sharing.conftest import here, kineto, out, sample, slower  # noqa: F401  fixtures
from tests.report.samples import SAMPLES, command, gpu_scan
from tests.report.sheets.browser import data_of, dom_of, needs_browser

PAGE = "small-against-slower.report.html"


def text_of(page: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", body)).replace("\u00a0", " ")


def test_compare_prints_what_compare_prints_and_writes_a_page(here, kineto, slower, out):  # noqa: F811
    text = out("report", "--compare", kineto, slower)
    assert text == out("compare", kineto, slower) + f"\n{PAGE}\n"
    page = text_of((here / PAGE).read_text())
    assert "small.pt.trace.json against slower.pt.trace.json" in page
    assert "gemm_kernel" in page
    assert "Where the time went, before and after" in page
    figures = out("report", "--compare", kineto, slower, "--json", "--force")
    told = json.loads(out("compare", kineto, slower, "--json"))
    beside = {
        f"metrics_{letter}": json.loads(out("metrics", file, "--json"))
        for letter, file in (("a", kineto), ("b", slower))
    }
    assert json.loads(figures) == {**told, **beside}
    for table in told["hotspots"]:
        for row in table["rows"]:
            assert f"{row['mean_b_ns'] / 1000:.2f} µs" in page


def test_compare_is_of_two(here, kineto, capsys):  # noqa: F811
    assert run_cli(["report", "--compare", str(kineto)]) == 2
    assert "--compare takes two runs or files, not 1" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.slow
def test_two_runs_are_compared_as_compare_does(here, sample, out):  # noqa: F811
    a, b = sample("0.1-scan-torch", "a"), sample("0.1-first-scan-torch", "b")
    told = out("report", "--compare", a, b, "--json", "-o", "two.html")
    assert told == out("compare", a, b, "--json")
    page = text_of((here / "two.html").read_text())
    for point in json.loads(told)["points"]:
        assert point["point"] in page


def test_the_answer_of_scans_counts_points_beyond_noise():
    a = gpu_scan()
    assert "No throughput changed by more than the noise" in answer(compare(a, a))
    twice = tuple(
        msgspec.structs.replace(point, throughput=2 * point.throughput, metrics={})
        for point in a.points
    )
    alone = msgspec.structs.replace(
        a, points=tuple(msgspec.structs.replace(one, metrics={}) for one in a.points)
    )
    text = answer(compare(alone, msgspec.structs.replace(a, points=twice)))
    assert "+100.0 %, better" in text
    assert f"at {len(a.points)} of {len(a.points)} points in common" in text


def test_nothing_in_common_is_said():
    empty = SAMPLES["empty"]()
    assert answer(compare(empty, empty)) == "Nothing in common to compare."
    assert "Nothing in common to compare." in render(compare(empty, empty), empty, empty)


def test_names_are_text():
    hostile = "<img src=x onerror=alert(1)>"
    a = msgspec.structs.replace(command(), source=f"/x/{hostile}")
    page = render(compare(a, command()), a, command())
    assert hostile not in page
    assert "&lt;img" in page


@needs_browser
@pytest.mark.slow
def test_the_page_runs_and_loads_nothing_else(tmp_path):
    page = tmp_path / "page.html"
    a = gpu_scan()
    page.write_text(render(compare(a, a), a, a))
    probe = """
    var head = document.querySelector("table.sortable th:nth-child(2) button");
    head.click();
    var table = head.closest("table");
    document.documentElement.dataset.sorted = head.closest("th").getAttribute("aria-sort");
    document.documentElement.dataset.loaded = performance.getEntriesByType("resource").length;
    document.documentElement.dataset.coloured = getComputedStyle(document.querySelector("section")).borderRadius;
    """
    data = data_of(dom_of(page, tmp_path, probe))
    assert data.get("errors") is None
    assert (data["ready"], data["sorted"], data["loaded"]) == ("yes", "ascending", "0")
    assert data["coloured"] == "10px"
