"""Tables for other programs: all rows, exact times, no live formulas, and nothing overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import profharness
from profharness.cli import run_cli
from profharness.rundir.shown.screen import as_cell
from profharness.understand.export import sheets, workbook
from profharness.understand.export.command import export
from tests.needs import packages
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.run_files import run_of

packages("openpyxl", "prometheus_client")
FORMULA = '=HYPERLINK("http://x","a")'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "run"
    run_of(path, ranks=1, kernels=20)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names that are formulas and controls, and times beyond what a float holds."""
    events = [
        launch("hipLaunchKernel", 4, 2, 1),
        kernel(FORMULA, 8, 0.001, correlation=1),
        launch("hipLaunchKernel", 14, 2, 2),
        kernel("a\x1bb\u202ec\nd", 18, 5, correlation=2),
    ]
    given = document(events, baseTimeNanoseconds=1_751_000_000_000_000_001)
    return write(tmp_path_factory.mktemp("file") / "trace.json", given)


def tables(folder: Path, form: str) -> dict[str, pd.DataFrame]:
    read = {
        "csv": lambda path: pd.read_csv(path, dtype=str, keep_default_na=False),
        "json": lambda path: pd.DataFrame(json.loads(path.read_text())),
        "parquet": lambda path: pd.read_parquet(path, dtype_backend="numpy_nullable"),
    }[form]
    return {path.stem: read(path) for path in sorted(folder.iterdir())}


def plain(frame: pd.DataFrame) -> list[list[object]]:
    return [
        [None if pd.isna(value) or value == "" else value for value in row]
        for row in frame.astype(object).values.tolist()
    ]


def written(frame: pd.DataFrame) -> list[list[str]]:
    """The rows as CSV writes them."""
    return [
        ["" if one is None else as_cell(one) if isinstance(one, str) else str(one) for one in row]
        for row in plain(frame)
    ]


def test_every_form_holds_the_same_rows(root, tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "ROWS_AT_ONCE", 7)
    found = {}
    for form in ("csv", "json", "parquet"):
        made = export([root], tmp_path / form, form)
        assert made.paths == tuple(tmp_path / form / path.name for path in made.paths)
        found[form] = tables(tmp_path / form, form)
    trace = profharness.open(root).trace()
    assert set(found["csv"]) >= {"kernels", "ops", "samples", "marks", "points", "metrics"}
    for name, frame in found["parquet"].items():
        for other in ("csv", "json"):
            assert found[other][name].columns.tolist() == frame.columns.tolist()
        assert plain(found["json"][name]) == plain(frame), name
        assert found["csv"][name].values.tolist() == written(frame), name
    every = found["parquet"]["kernels"]
    chosen = every[every["pass"] == trace.pass_name]
    assert plain(chosen) == plain(trace.kernels.to_pandas())
    assert every["start_ns"].dtype == "Int64"
    assert plain(found["parquet"]["samples"]) == plain(trace.samples.to_pandas())
    noted = found["csv"]["columns"].set_index(["table", "column"])
    assert noted.loc[("kernels", "dur_ns"), "unit"] == "ns"
    metrics = found["parquet"]["metrics"]
    whole = metrics[metrics["point"].isna()]
    shown = profharness.open(root).metrics()
    assert whole["name"].tolist() == shown["name"].tolist()
    assert plain(whole[["value", "low"]]) == plain(shown[["value", "low"]])


def test_units_travel_with_parquet(root, tmp_path):
    import pyarrow.parquet as pq

    export([root], tmp_path / "out", "parquet")
    field = pq.read_schema(tmp_path / "out" / "copies.parquet").field("bytes")
    assert field.metadata == {b"unit": b"B", b"meaning": field.metadata[b"meaning"]}


def test_names_are_shown_and_no_cell_is_a_formula(file, tmp_path):
    export([file], tmp_path / "csv", "csv")
    export([file], tmp_path / "raw", "csv", raw=True)
    export([file], tmp_path / "json", "json")
    shown = "a\\u001bb\\u202ec\\nd"
    assert tables(tmp_path / "csv", "csv")["kernels"]["name"].tolist() == [f"'{FORMULA}", shown]
    assert tables(tmp_path / "raw", "csv")["kernels"]["name"].tolist() == [FORMULA, shown]
    names = [row["name"] for row in json.loads((tmp_path / "json" / "kernels.json").read_text())]
    assert names == [FORMULA, "a\x1bb\u202ec\nd"]
    text = (tmp_path / "json" / "kernels.json").read_text()
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_workbook_keeps_times_exact_and_holds_no_formula(file, tmp_path):
    from openpyxl import load_workbook

    export([file], tmp_path / "a.xlsx", "xlsx")
    book = load_workbook(tmp_path / "a.xlsx")
    rows = list(book["kernels"].iter_rows())
    head = [cell.value for cell in rows[0]]
    starts = [row[head.index("start_ns")] for row in rows[1:]]
    expected = profharness.read(file).trace().kernels.to_pandas()
    assert [int(cell.value) for cell in starts] == expected["start_ns"].tolist()
    assert {cell.data_type for cell in starts} == {"s"}
    assert [row[head.index("dur_ns")].value for row in rows[1:]] == [1, 5000]
    assert rows[1][head.index("name")].value == as_cell(FORMULA)
    cells = [cell for page in book for row in page.iter_rows() for cell in row]
    assert "f" not in {cell.data_type for cell in cells}


def test_rows_that_do_not_fit_are_counted(root, tmp_path, monkeypatch, capsys):
    from openpyxl import load_workbook

    monkeypatch.setattr(workbook, "MOST_ROWS", 8)
    assert run_cli(["export", str(root), "-o", str(tmp_path / "a.xlsx"), "--format", "xlsx"]) == 0
    total = len(profharness.open(root).trace(pass_name="torch").ops)
    told = capsys.readouterr().err
    assert f"ops: {total - 8} of {total} rows were left out" in told
    assert load_workbook(tmp_path / "a.xlsx")["ops"].max_row == 9


def test_openmetrics_are_the_measured_metrics(root, file, tmp_path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    for path in (root, file):
        place = tmp_path / f"{path.name}.prom"
        export([path], place, "openmetrics")
        recording = profharness.open(path) if path is root else profharness.read(path)
        families = list(text_string_to_metric_families(place.read_text()))
        every = [sample for family in families for sample in family.samples]
        samples = [one for one in every if "host" not in one.labels]  # telemetry has a host
        whole = recording.metrics(points=True)
        measured = whole[["value", "low", "high"]].notna().sum().sum()
        verdict = recording.verdict is not None
        assert len(samples) == measured + verdict
        assert {sample.labels["source"] for sample in samples} == {str(path)}
        assert {one.timestamp is None for one in every} == {path is file}
        for family in families:
            assert family.type in ("gauge", "info", "counter")
            assert not family.unit or family.name.endswith(f"_{family.unit}")
        values = {s.name: s.value for s in samples if "point" not in s.labels}
        busy = recording.metrics().set_index("name").loc["busy", ["value", "low", "high"]].dropna()
        assert len(busy)  # a range has no value
        for end, value in busy.items():
            name = "profharness_busy" + ("" if end == "value" else f"_{end}")
            assert values[f"{name}_ratio"] == value


def test_openmetrics_of_odd_names_and_units():
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    from profharness.analysis.records import Figure, Summary, TraceCounts
    from profharness.understand.export.openmetrics import openmetrics_text

    figure = Figure(value=1.5, unit="items/s", low=1.0, high=None, source="")
    summary = Summary(
        source='a "b" \\ \n c',
        trace=TraceCounts(),
        metrics={
            "throughput": figure,
            "steps_per_second": Figure(value=2.0, unit="steps/s", source=""),
            "x:y": Figure(value=3.0, unit="°C", source=""),
            "x y": Figure(value=4.0, unit="°C", source=""),
            "none": Figure(value=float("inf"), unit="", source=""),
        },
    )
    text = openmetrics_text(summary)
    assert text.endswith("\n# EOF\n")
    found = {one.name: one for one in text_string_to_metric_families(text)}
    assert {name: one.samples[0].value for name, one in found.items()} == {
        "profharness_throughput_items_per_second": 1.5,
        "profharness_throughput_low_items_per_second": 1.0,
        "profharness_steps_per_second": 2.0,
        "profharness_x_y_celsius": 3.0,
        "profharness_x_y_2_celsius": 4.0,
    }


def test_nothing_is_overwritten_unasked(root, file, tmp_path):
    folder, place = tmp_path / "out", tmp_path / "out.prom"
    export([file], folder, "csv")
    export([file], place, "openmetrics")
    for where, form in ((folder, "csv"), (place, "openmetrics")):
        with pytest.raises(profharness.OutputExists):
            export([file], where, form)
        export([file], where, form, force=True)
    with pytest.raises(profharness.OutputExists, match="is a file"):
        export([file], place, "csv", force=True)
    with pytest.raises(profharness.UsageError, match="would be destroyed"):
        export([file], file, "openmetrics", force=True)
    before = (root / "manifest.json").read_bytes()
    with pytest.raises(profharness.UsageError):
        export([root], root / "manifest.json", "openmetrics", force=True)
    assert (root / "manifest.json").read_bytes() == before


def test_without_openpyxl_the_error_says_what_to_install(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    line = ["export", str(file), "-o", str(tmp_path / "a.xlsx"), "--format", "xlsx"]
    assert run_cli(line) == 3
    assert "pip install 'profharness[export]'" in capsys.readouterr().err
    assert not (tmp_path / "a.xlsx").exists()
