"""`report` of trace files and of CSVs of scans: the page, the words, and the same figures as other
commands print.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.cli.sharing import browser
from profharness.cli.sharing.places import stem_of
from profharness.units import format_number
from tests.cli.sharing.conftest import kineto_text, run_cells
from tests.report.sheets.browser import data_of, dom_of, needs_browser

FORMATS = (
    "kineto/h100_bert_small.json.gz",
    "rocm/rocprofv3/csv/gfx1151_decode_kernel_trace.csv",
    "rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz",
    "rocm/rocprofv3/pftrace/mi300a_3648722_results.pftrace",
    "rocm/rocprof_v1/kokkos_2021/results.json",
    "rocm/rocprof_v1/mi300a_vecadd/results.stats.csv",
    "rocm/rocprof_compute/vcopy_MI300X",
    "rocm/rocprofv3/csv/gfx1151_decode_hip_api_trace.csv",
    "rocm/rocprof_sys/wall_clock_jacobi_openmp_cxx_a.txt",
    "rocm/miopen_log/gfx942_info_pr3522.log",
    "rocm/amd_log_level/rocm6_level3_mi210_triton4445.log",
)


def words_of(page: Path) -> str:
    """The page's text, its tags and scripts left out."""
    text = re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", text))


def test_the_page_lies_here_and_is_never_overwritten_unasked(here, kineto, out, capsys):
    text = out("report", kineto)
    assert text.splitlines()[-1] == "small.report.html"
    assert re.search(r"^Answer +The GPU computes", text, re.MULTILINE)
    assert re.search(r"^Next ", text, re.MULTILINE)
    assert re.search(r"^Trust ", text, re.MULTILINE)
    page = here / "small.report.html"
    page.write_text("mine")
    assert run_cli(["report", str(kineto)]) == 2
    assert "small.report.html exists\n" in capsys.readouterr().err
    assert page.read_text() == "mine"
    out("report", kineto, "--force")
    assert "Hotspots" in words_of(page)


def test_a_file_that_is_read_is_not_overwritten(kineto, capsys):
    before = kineto.read_bytes()
    assert run_cli(["report", str(kineto), "-o", str(kineto), "--force"]) == 2
    assert kineto.read_bytes() == before
    assert "is read for this" in capsys.readouterr().err


def test_json_is_what_metrics_prints_and_the_page_holds_the_same(here, kineto, out):
    told = out("report", kineto, "--json")
    assert told == out("metrics", kineto, "--json")
    figures = json.loads(told)
    page = words_of(here / "small.report.html")
    assert (figures["verdict"] or {}).get("text", figures["verdict_needs"]) in page
    busy = figures["trace"]["busy_ns"] / 1000
    assert f"{busy:.2f} µs" in page
    parts = figures["partition"]
    idle = sum(ns for name, ns in parts.items() if "idle" in name) / parts["window_ns"]
    assert f"{100 * idle:.1f} %" in page


def test_with_json_a_taken_place_stays_and_the_figures_come(here, kineto, out, capsys):
    (here / "small.report.html").write_text("mine")
    assert run_cli(["report", str(kineto), "--json"]) == 0
    printed = capsys.readouterr()
    assert "small.report.html exists and stays as it is" in printed.err
    assert printed.out == out("metrics", kineto, "--json")
    assert (here / "small.report.html").read_text() == "mine"
    assert run_cli(["report", str(kineto), "--json", "-o", "small.report.html"]) == 2


def test_the_page_says_what_the_file_is_and_shows_nothing_of_runs(here, kineto, out):
    out("report", kineto)
    page = words_of(here / "small.report.html")
    assert "small.pt.trace.json" in page
    assert "AMD Instinct <MI250X>" in page
    assert "2 kernels" in page
    assert "bare pass" not in page
    assert "summary.json" not in page
    headings = re.findall(r"<h2>(.*?)</h2>", (here / "small.report.html").read_text())
    assert {"Points", "Trials", "Telemetry", "Passes and overhead"}.isdisjoint(headings)


def test_several_files_are_ranks_of_one_job(here, tmp_path, out):
    ranks = []
    for rank in range(3):
        path = tmp_path / f"rank{rank}.json"
        path.write_text(kineto_text(1.0 + rank))
        ranks.append(path)
    assert out("report", *ranks, "--json") == out("metrics", *ranks, "--json")
    page = words_of(here / "rank0.report.html")
    assert "3 files: rank0.json to rank2.json" in page


def test_a_csv_of_a_scan_is_reported_with_its_curves(here, scan_csv, out):
    assert out("report", scan_csv, "--json") == out("saturation", scan_csv, "--json")
    text = " ".join(out("report", scan_csv, "--force").split())
    assert "A100 gives its best from batch 256" in text
    page = (here / "scan.report.html").read_text()
    assert "Throughput and latency" in page
    assert format_number(24_331) in page
    assert "T4" in page


def test_what_comes_by_a_pipe_is_called_stdin(here, kineto, out):
    script = "import sys; from profharness.cli import run_cli; sys.exit(run_cli(sys.argv[1:]))"
    command = f'cat "{kineto}" | "{sys.executable}" -c "{script}" report -'
    assert os.system(command + " >/dev/null") == 0
    assert "Hotspots" in words_of(here / "stdin.report.html")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("resnet.pt.trace.json.gz", "resnet"),
        ("a/b/28_results.db", "28_results"),
        ("x.pftrace", "x"),
        (".json", ".json"),
        ("-", "stdin"),
        ("/dev/fd/63", "stdin"),
        ("v1.2.csv", "v1.2"),
    ],
)
def test_the_name_of_a_page(name, stem):
    assert stem_of(Path(name)) == stem


def test_a_missing_file_is_said(capsys, here):
    assert run_cli(["report", "none.json", "other.json"]) == 4
    assert "none.json: there is no such file or run directory" in capsys.readouterr().err
    assert not list(here.iterdir())


def test_open_tells_the_path_where_nothing_opens(here, kineto, monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert run_cli(["report", str(kineto), "--open"]) == 0
    assert f"the page is {here / 'small.report.html'}" in capsys.readouterr().err


def test_open_opens_the_page_and_never_fails_the_command(here, kineto, monkeypatch, capsys):
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(browser.webbrowser, "open", lambda link: not opened.append(link))
    assert run_cli(["report", str(kineto), "--open"]) == 0
    assert opened == [(here / "small.report.html").as_uri()]
    assert "no browser" not in capsys.readouterr().err

    def broken(_link: str) -> bool:
        raise webbrowser.Error("no runnable browser")

    monkeypatch.setattr(browser.webbrowser, "open", broken)
    assert run_cli(["report", str(kineto), "--open", "--force"]) == 0
    assert "no browser opens here" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_page_with_the_figures_of_metrics(here, shared, out, name):
    file = shared / "fixtures" / name
    told = out("report", file, "-o", "page.html", "--json")
    assert told == out("metrics", file, "--json")
    figures, page = json.loads(told), words_of(here / "page.html")
    verdict = figures["verdict"]
    assert (figures["verdict_needs"] if verdict is None else verdict["text"]) in page
    if figures["trace"]["kernels"]:
        assert format_number(figures["trace"]["kernels"]) in page


@pytest.mark.parametrize(("form", "start"), [("md", b"# small"), ("pdf", b"%PDF"), ("ipynb", b"{")])
def test_other_forms_have_names_of_their_own(here, kineto, out, form, start):
    if form == "pdf":
        pytest.importorskip("matplotlib")
    assert out("report", kineto, "--format", form).splitlines()[-1] == f"small.report.{form}"
    assert (here / f"small.report.{form}").read_bytes().startswith(start)
    assert [path.name for path in here.iterdir()] == [f"small.report.{form}"]


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (("-o", "small.md"), b"# small"),
        (("-o", "small.IPYNB"), b"{"),
        (("-o", "small.html"), b"<!doctype html>"),
        (("-o", "small.txt"), b"<!doctype html>"),
        (("-o", "small.txt", "--format", "md"), b"# small"),
        (("-o", "small.html", "--format", "md"), b"# small"),  # what is said counts
    ],
)
def test_the_ending_of_the_output_tells_the_form(here, kineto, out, words, start):
    out("report", kineto, *words)
    assert (here / words[1]).read_bytes().lower().startswith(start)


def test_a_form_of_a_run_lies_in_the_run(sample, out, capsys):
    run = sample("0.1-scan-torch")
    out("report", run, "--format", "md")
    text = (run / "report.md").read_text()
    assert "**Answer**" in text
    assert "| batch |" in text
    out("report", run, "--format", "ipynb", "-o", run.parent / "again.ipynb")
    cells = json.loads((run.parent / "again.ipynb").read_text())["cells"]
    assert f"profharness.open({run.name!r})" in "".join(cells[1]["source"])
    assert run_cli(["report", str(run), "--format", "md", "-o", str(run / "report.md")]) == 2
    assert "exists" in capsys.readouterr().err
    out("report", run, "-o", run.parent / "by-name.md")
    assert (run.parent / "by-name.md").read_text() == text


def test_no_notebook_of_what_cannot_be_opened_again(here, kineto, capsys):
    script = "import sys; from profharness.cli import run_cli; sys.exit(run_cli(sys.argv[1:]))"
    line = [sys.executable, "-c", script, "report", "-", "--format", "ipynb"]
    done = subprocess.run(line, input=kineto.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"a notebook opens its files again" in done.stderr
    assert not list(here.iterdir())


def test_the_notebook_of_a_scan_has_its_points_and_its_plot(here, scan_csv, out):
    assert out("report", scan_csv, "--format", "ipynb").splitlines()[-1] == "scan.report.ipynb"
    seen = run_cells(here / "scan.report.ipynb")
    rows = scan_csv.read_text().splitlines()[1:]
    points = seen["scan"].points.to_pandas()
    assert list(points["throughput"]) == [float(row.split(",")[2]) for row in rows]
    assert len(seen["scan"].plot().axes) >= 2


@needs_browser
@pytest.mark.slow
def test_the_page_of_a_gpu_trace_runs_in_a_browser_without_a_complaint(here, shared, out):
    file = shared / "fixtures" / "kineto" / "h100_bert_small.json.gz"
    figures = json.loads(out("report", file, "--json"))
    page = here / "h100_bert_small.report.html"
    probe = (
        "document.documentElement.dataset.loaded = performance.getEntriesByType('resource').length;"
    )
    dom = dom_of(page, here, probe)
    data = data_of(dom)
    assert data.get("errors") is None
    assert data["loaded"] == "0"
    verdicts = re.findall(r'<dd class="judged">(.*?)</dd>', dom, re.DOTALL)
    texts = [html.unescape(re.sub(r"<[^>]+>", "", one)) for one in verdicts]
    assert any(figures["verdict"]["text"] in text for text in texts)


def test_the_tables_of_one_process_are_one_trace_and_show_how_the_device_was_used(
    here, shared, out
):
    folder = shared / "fixtures" / "rocm" / "rocprofv3" / "csv"
    tables = [folder / f"gfx1151_decode_{name}_trace.csv" for name in ("kernel", "hip_api")]
    assert out("report", *tables, "--json") == out("metrics", *tables, "--json")
    page = words_of(here / "gfx1151_decode_kernel_trace.report.html")
    assert "How well the device was used" in page
