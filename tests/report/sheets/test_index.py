"""`index`: one page over many runs, its table in a real browser, and tags and notes."""

from __future__ import annotations

import html
import json
import re
import shutil
import time
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.report.sheets.entries import Entry
from profharness.report.sheets.index import render
from profharness.rundir.manifest import GitState, Manifest, ScanRecord
from profharness.rundir.notes import read_notes
from profharness.rundir.paths import RunDir
from profharness.understand.run_entries import entries
from tests.cli.sharing.conftest import out, sample  # noqa: F401  fixtures
from tests.report.sheets.browser import data_of, dom_of, needs_browser

VERDICT = "Not saturated: the device is idle 93.0 % of the time."


def made(folder: Path, name: str, day: int = 1, throughput: float | None = 1000.0) -> Path:
    """A run directory with a manifest and a summary, as `run` leaves them."""
    root = folder / name
    RunDir.create(root).write_manifest(
        Manifest(
            id=name,
            created=f"2026-01-{day:02d}T00:00:00Z",
            profharness="0",
            kind="scan",
            argv=(),
            state="done",
            scan=ScanRecord(name="particlenet"),
            git=GitState(commit=f"{day:012x}{0:028x}", dirty=day % 2 == 0),
        )
    )
    point = {
        "point": "torch-b4",
        "throughput": throughput,
        "metrics": {"throughput": {"value": throughput, "unit": "jets/s"}, "other": {"value": 1}},
        "verdict": {"kind": "idle-host_not_ready", "text": VERDICT, "at_most": None},
    }
    summary = {
        "run": {"device": "AMD Instinct MI250X", "asked": {"model": "/x/net.onnx"}},
        "points": [point] if throughput is not None else [],
        "findings": [{"severity": "error"}, {"severity": "warning"}, {"severity": "info"}],
    }
    (root / "summary.json").write_text(json.dumps(summary))
    (root / "report.html").write_text("page")
    return root


def text_of(page: Path) -> str:
    body = re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", body)).replace("\u00a0", " ")


def test_an_entry_says_what_a_run_reached(tmp_path):
    root = made(tmp_path, "a", throughput=24_331.0)
    (entry,) = entries([root], tmp_path)
    assert entry == Entry(
        name="a",
        path=str(root),
        page="./a/report.html",
        created="2026-01-01T00:00:00Z",
        state="done",
        what="particlenet: net.onnx",
        device="AMD Instinct MI250X",
        best=24_331.0,
        best_at="torch-b4",
        unit="jets/s",
        verdict=VERDICT,
        verdict_kind="idle-host_not_ready",
        errors=1,
        warnings=1,
        commit="000000000001",
    )


def test_figures_are_those_of_the_run(sample, out, tmp_path):  # noqa: F811
    run = sample("0.1-scan-torch")
    told = json.loads(out("report", run, "--json"))
    (entry,) = entries([run], tmp_path)
    assert entry.best == max(point["throughput"] for point in told["points"])
    assert entry.errors == sum(one["severity"] == "error" for one in told["findings"])


def test_the_page_lists_all_runs_also_those_that_cannot_be_read(tmp_path, out):  # noqa: F811
    made(tmp_path, "a")
    (made(tmp_path, "b", 2) / "manifest.json").write_text("{")
    (made(tmp_path, "c", 3) / "summary.json").unlink()
    (made(tmp_path, "d", 4) / "summary.json").write_text("[")
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (made(tmp_path, "e", 5) / "summary.json").unlink()
    (tmp_path / "e" / "summary.json").symlink_to(outside)
    assert out("index", tmp_path).strip().endswith("index.html")
    page = text_of(tmp_path / "index.html")
    assert "5 runs" in page
    assert "damaged" in page
    assert "no figures yet: profharness report makes them" in page
    assert page.count("1.00 k jets/s") == 1
    assert VERDICT in page


def test_an_index_is_renewed_and_nothing_else_overwritten(tmp_path, out, capsys):  # noqa: F811
    made(tmp_path, "a")
    out("index", tmp_path)
    made(tmp_path, "b", 2)
    out("index", tmp_path)
    assert "2 runs" in text_of(tmp_path / "index.html")
    (tmp_path / "index.html").write_text("<html>mine</html>")
    assert run_cli(["index", str(tmp_path)]) == 2
    assert (tmp_path / "index.html").read_text() == "<html>mine</html>"
    assert "index.html exists" in capsys.readouterr().err
    out("index", tmp_path, "--force")


def test_tags_and_notes_stay_in_the_run_and_not_in_its_manifest(tmp_path, out):  # noqa: F811
    root = made(tmp_path, "a=b")
    manifest = (root / "manifest.json").read_bytes()
    words = ("--tag", "a=b=good", "--tag", f"{root}=good", "--tag", "a=b=x=1", "--note", "a=b=why")
    out("index", tmp_path, *words)
    assert read_notes(root).tags == ("good", "x=1")
    assert read_notes(root).note == "why"
    assert (root / "manifest.json").read_bytes() == manifest
    page = (tmp_path / "index.html").read_text()
    assert '<span class="tag">good</span> <span class="tag">x=1</span>' in page
    assert '<div class="note">why</div>' in page


@pytest.mark.parametrize("word", ["a", "none=x", "=x", "a=", "../a=x"])
def test_a_tag_of_no_run_is_refused_before_anything_is_written(tmp_path, capsys, word):
    folder = tmp_path / "runs"
    made(folder, "a")
    assert run_cli(["index", str(folder), "--tag", word]) == 2
    assert not (folder / "index.html").exists()
    assert not (folder / "a" / "notes.json").exists()


def test_no_runs_is_said(tmp_path, capsys):
    assert run_cli(["index", str(tmp_path)]) == 4
    assert run_cli(["index", str(tmp_path / "none")]) == 4
    assert "no runs below" in capsys.readouterr().err


def test_names_are_text_and_links_stay_in_the_folder():
    name = 'x"><img src=x onerror=alert(1)>'
    page = render(name, [Entry(name=name, path=name, page="./a/report.html", note=name, what=name)])
    assert "<img" not in page
    assert page.count('href="') == page.count('href="./a/report.html"') + 2  # icon, and skip


def test_a_folder_like_a_scheme_is_a_place(tmp_path):
    root = made(tmp_path, "javascript:alert(1)")
    (entry,) = entries([root], tmp_path)
    assert entry.page == "./javascript%3Aalert%281%29/report.html"


def test_history_has_a_dot_for_each_run_of_the_same_work(tmp_path):
    roots = [made(tmp_path, f"r{day}", day, 1000.0 + day) for day in (3, 1, 2)]
    roots.append(made(tmp_path, "none", 4, None))
    page = render("runs", entries(roots, tmp_path))
    assert page.count("<circle") == 3
    assert page.count('class="dirty"') == 1
    assert "3 runs of 3 commits" in html.unescape(page)
    tips = re.findall(r"<title>(r\d): ", page)
    assert tips == ["r1", "r2", "r3"]
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', page)]
    assert heights == sorted(heights, reverse=True)


@needs_browser
@pytest.mark.slow
def test_the_table_filters_sorts_and_compares_in_a_browser(tmp_path):
    for day in (1, 2, 3):
        made(tmp_path, f"run {day}", day, 1000.0 * (4 - day))
    assert run_cli(["index", str(tmp_path)]) == 0
    probe = """
    var data = document.documentElement.dataset;
    function names() {
      return Array.from(document.querySelectorAll("#runs tbody tr")).filter(function (row) {
        return !row.hidden; }).map(function (row) { return row.cells[1].textContent.trim(); }).join(",");
    }
    data.first = names();
    document.querySelectorAll("#runs th button")[5].click();
    data.rising = names();
    document.querySelectorAll("#runs th button")[5].click();
    data.falling = names();
    var field = document.querySelector("input[type=search]");
    field.value = "MI250x 000000000002"; field.dispatchEvent(new Event("input"));
    data.filtered = names() + " " + document.getElementById("shown").textContent;
    var boxes = document.querySelectorAll("#runs input[type=checkbox]");
    data.disabled = document.querySelector("button.copy").disabled;
    boxes[2].click(); boxes[0].click();
    data.command = document.getElementById("compare").textContent;
    data.enabled = !document.querySelector("button.copy").disabled;
    boxes[1].click();
    data.ticked = document.querySelectorAll("#runs input:checked").length;
    data.loaded = performance.getEntriesByType("resource").length;
    data.sideways = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    """
    data = data_of(dom_of(tmp_path / "index.html", tmp_path, probe))
    assert data.get("errors") is None
    assert data["first"] == "run 3,run 2,run 1"
    assert data["rising"] == "run 3,run 2,run 1"
    assert data["falling"] == "run 1,run 2,run 3"
    assert data["filtered"] == "run 2 1 of 3"
    quoted = [f"'{tmp_path / name}'" for name in ("run 3", "run 1")]
    assert data["command"] == f"profharness compare {quoted[0]} {quoted[1]}"
    assert (data["disabled"], data["enabled"], data["ticked"]) == ("true", "true", "2")
    assert (data["loaded"], data["sideways"]) == ("0", "0")


@pytest.mark.slow
def test_a_thousand_runs_take_little(tmp_path):
    first = made(tmp_path, "run0")
    for number in range(1, 1000):
        shutil.copytree(first, tmp_path / f"run{number}")
    before = time.process_time()
    assert run_cli(["index", str(tmp_path)]) == 0
    assert time.process_time() - before < 5
    assert (tmp_path / "index.html").stat().st_size < 2_000_000
