"""`report --compare` in all of its forms: of runs, of trace files, of CSVs of scans."""

from __future__ import annotations

import json

import pytest

from profharness.cli import run_cli
from tests.cli.sharing.conftest import SCAN, run_cells


@pytest.fixture
def faster_csv(tmp_path):
    """The scan with a quarter more throughput."""
    head, *rows = (line.split(",") for line in SCAN.splitlines())
    for row in rows:
        row[2] = str(1.25 * float(row[2]))
    path = tmp_path / "faster.csv"
    path.write_text("".join(",".join(row) + "\n" for row in (head, *rows)))
    return path


@pytest.mark.parametrize("form", ["md", "pdf", "ipynb"])
def test_each_form_has_its_name_and_compare_is_printed(here, kineto, slower, out, form):
    if form == "pdf":
        pytest.importorskip("matplotlib")
    text = out("report", "--compare", kineto, slower, "--format", form)
    name = f"small-against-slower.report.{form}"
    assert text == out("compare", kineto, slower) + f"\n{name}\n"
    assert [path.name for path in here.iterdir()] == [name]
    assert (here / name).read_bytes().startswith({"md": b"# small", "pdf": b"%PDF"}.get(form, b"{"))


def test_the_markdown_holds_the_verdicts_and_how_many_times(here, kineto, slower, out):
    out("report", "--compare", kineto, slower, "--format", "md", "-o", "two.md")
    text = (here / "two.md").read_text()
    for letter, file in (("A", kineto), ("B", slower)):
        verdict = json.loads(out("metrics", file, "--json"))["verdict"]["text"]
        assert f"**{letter}** " in text
        assert verdict in text
    assert " 2.000 times |" in text


def test_the_notebook_compares_as_the_command_does(here, kineto, slower, out):
    out("report", "--compare", kineto, slower, "--format", "ipynb", "-o", "two.ipynb")
    seen = run_cells(here / "two.ipynb")
    told = json.loads(out("compare", kineto, slower, "--json"))
    frame = seen["a"].compare(seen["b"])
    assert frame["point"].isna().all()
    for name in ("name", "unit", "a", "b", "change"):
        assert list(frame[name]) == [row[name] for row in told["run"]]
    changed = seen["both"].set_index("name")
    (table,) = told["hotspots"]
    for row in table["rows"]:
        assert changed.loc[row["name"], "total_ns_b"] == row["total_b_ns"]
        assert changed.loc[row["name"], "total_ns_a"] == row["total_a_ns"]


def test_csvs_of_scans_are_compared_point_by_point(here, scan_csv, faster_csv, out):
    told = out("compare", scan_csv, faster_csv, "--json")
    figures = json.loads(out("report", "--compare", scan_csv, faster_csv, "--json"))
    for letter, file in (("a", scan_csv), ("b", faster_csv)):
        curves = json.loads(out("saturation", file, "--json"))
        assert figures.pop(f"saturation_{letter}") == curves
    assert figures == json.loads(told)
    assert len(figures["points"]) == 11
    for point in figures["points"]:
        (rate,) = [delta for delta in point["deltas"] if delta["name"] == "throughput"]
        assert rate["change"] == pytest.approx(0.25)
        assert rate["significant"]


def test_the_notebook_of_two_scans(here, scan_csv, faster_csv, out):
    out("report", "--compare", scan_csv, faster_csv, "--format", "ipynb", "-o", "two.ipynb")
    seen = run_cells(here / "two.ipynb")
    frame = seen["a"].compare(seen["b"])
    rates = frame[frame["name"] == "throughput"]
    assert list(rates["change"]) == pytest.approx([0.25] * 11)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["md", "pdf", "ipynb"])
def test_two_runs_in_each_form(here, sample, out, form):
    if form != "md":
        pytest.importorskip("matplotlib")
    a, b = sample("0.1-scan-torch", "a"), sample("0.1-first-scan-torch", "b")
    told = out("report", "--compare", a, b, "--format", form, "-o", f"two.{form}", "--json")
    assert told == out("compare", a, b, "--json")
    made = here / f"two.{form}"
    if form == "ipynb":
        frame = (seen := run_cells(made))["a"].compare(seen["b"])
        expected = [p["point"] for p in json.loads(told)["points"] for _ in p["deltas"]]
        assert list(frame["point"].dropna()) == expected
    elif form == "md":
        for point in json.loads(told)["points"]:
            assert f"| {point['point']} " in made.read_text()
    assert run_cli(["report", "--compare", str(a), str(b), "-o", str(made)]) == 2
