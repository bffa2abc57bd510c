"""Runs and trace files as objects: the same figures as the commands', read once, and changed by
nobody.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from html import escape
from pathlib import Path

import pandas as pd
import pytest

import profharness
from profharness.cli import run_cli
from profharness.report.tables.hotspots import HOTSPOT_COLUMNS
from profharness.rundir.paths import RunDir
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op, write
from tests.run_files import run_of

COLUMNS = ["name", "value", "unit", "low", "high", "from", "needs"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("session") / "run"
    run_of(path, ranks=1, kernels=20)
    return path


@pytest.fixture(scope="module")
def run(root: Path) -> profharness.Run:
    return profharness.open(root)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    events = [
        op("aten::mm", 1, 9, 1),
        launch("hipLaunchKernel", 4, 2, 1),
        kernel("<b>gemm</b>", 8, 30, correlation=1),
        event("user_annotation", "ProfilerStep#1", 0, 50),
    ]
    return write(tmp_path_factory.mktemp("file") / "trace.json", document(events))


def printed(capsys: pytest.CaptureFixture[str], *line: str | Path) -> str:
    capsys.readouterr()
    assert run_cli([str(word) for word in line]) == 0
    return capsys.readouterr().out


def same(value: object, shown: object) -> bool:
    return (shown is None and bool(pd.isna(value))) or value == shown


def test_the_package_loads_nothing_heavy_and_names_all_it_has():
    code = (
        "import sys, profharness\n"
        "names = dir(profharness)\n"
        "assert set(profharness.__all__) <= set(names), names\n"
        "profharness.InputError, profharness.open\n"
        "heavy = {'pandas', 'torch', 'plotly', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    light = "import sys, profharness; sys.exit('numpy' in sys.modules or len(sys.modules) > 150)"
    subprocess.run([sys.executable, "-c", light], check=True)


def test_every_public_name_can_be_had_and_has_a_type():
    stub = Path(profharness.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for name in profharness.__all__:
        assert getattr(profharness, name) is not None
        assert f'"{name}",' in stub
    with pytest.raises(AttributeError, match="no attribute 'close'"):
        profharness.close  # noqa: B018


@pytest.mark.parametrize(("by", "pass_name"), [(None, None), ("op", "torch"), ("category", None)])
def test_hotspots_are_those_of_the_command(run, root, capsys, by, pass_name):
    line = () if by is None else ("--by", by)
    line += () if pass_name is None else ("--pass", pass_name)
    shown = json.loads(printed(capsys, "hotspots", root, *line, "--format", "json"))
    frame = run.hotspots(by=by, pass_name=pass_name)
    assert frame.columns.tolist() == list(HOTSPOT_COLUMNS)
    assert list(frame.columns) == list(shown["rows"][0])
    assert frame["name"].tolist() == [row["name"] for row in shown["rows"]]
    for row, values in zip(shown["rows"], frame.to_dict("records"), strict=True):
        for name in ("calls", "total_ns", "share", "median_ns", "std_ns", "device_ns", "op"):
            assert same(values[name], row[name]), name
    assert frame.attrs["total_ns"] == shown["total_ns"]
    assert frame.attrs["pass"] == shown["pass"]


def test_metrics_and_the_verdict_are_those_of_the_command(run, root, file, capsys):
    for recording, path in ((run, root), (profharness.read(file), file)):
        shown = json.loads(printed(capsys, "metrics", path, "--json"))
        frame = recording.metrics()
        assert frame.columns.tolist() == COLUMNS
        assert frame["name"].tolist() == list(shown["metrics"])
        for row in frame.to_dict("records"):
            figure = shown["metrics"][row["name"]]
            assert all(same(row[key], figure[key]) for key in COLUMNS[1:])
        assert recording.verdict == shown["verdict"]
        assert recording.verdict_needs == shown["verdict_needs"]
        assert recording.partition == shown["partition"]
        assert [item.id for item in recording.findings] == [one["id"] for one in shown["findings"]]
        assert [one.message for one in recording.problems] == [
            one["message"] for one in shown["problems"]
        ]
        frame = recording.metrics(points=True)
        assert frame.columns.tolist() == ["point", *COLUMNS]
        for point in shown["points"]:
            assert recording.metrics(point=point["point"])["name"].tolist() == list(
                point["metrics"]
            )
            assert (frame["point"] == point["point"]).sum() == len(point["metrics"])
    with pytest.raises(profharness.UsageError, match="no point 'b7'"):
        run.metrics(point="b7")


def test_the_records_add_up_to_the_hotspots_of_their_pass(run):
    trace = run.trace()
    kernels = trace.kernels.to_pandas()
    table = run.hotspots("kernel")
    assert len(trace.kernels) == len(kernels) == table["calls"].sum()
    assert kernels["dur_ns"].sum() == table["total_ns"].sum()
    assert {str(kernels[name].dtype) for name in ("start_ns", "dur_ns")} == {"int64"}
    assert set(kernels["pass"]) == {table.attrs["pass"]} == {trace.pass_name}
    assert set(run.trace(pass_name="torch").kernels.to_pandas()["pass"]) == {"torch"}
    for name in ("copies", "api", "ops", "marks", "samples", "counters", "requests", "problems"):
        records = getattr(trace, name)
        assert len(records) == len(records.to_pandas()), name
    assert len(trace.samples)
    assert repr(trace).startswith(f"<trace of pass rocprofv3: {len(kernels)} kernels")
    with pytest.raises(profharness.UsageError, match="no such pass"):
        run.trace(pass_name="nsys")


def test_points_are_one_row_each(run, root, capsys):
    shown = json.loads(printed(capsys, "metrics", root, "--json"))["points"]
    frame = run.points.to_pandas()
    assert frame["point"].tolist() == [point["point"] for point in shown]
    for value, point in zip(frame["latency_p50"], shown, strict=True):
        assert same(value, point["metrics"]["latency_p50"]["value"])
    assert len(run.points) == len(frame)


def test_each_thing_is_read_once_and_what_is_given_is_the_users_own(root, monkeypatch):
    run = profharness.open(root)
    first = run.hotspots("kernel")
    run.metrics(), run.trace()
    for name in ("load", "load_part", "load_files"):
        monkeypatch.setattr(f"profharness.understand.load.{name}", None)
    first["calls"] = 0
    assert run.hotspots("kernel")["calls"].gt(0).all()
    frame = run.trace().kernels.to_pandas()
    frame["dur_ns"] = 0
    assert run.trace().kernels.to_pandas()["dur_ns"].gt(0).all()
    assert run.metrics().equals(run.metrics())
    with pytest.raises(AttributeError):
        run.paths = ()


def test_a_folder_without_a_path_is_searched_for_the_newest_run(tmp_path, monkeypatch):
    monkeypatch.delenv("PROFHARNESS_OUTPUT", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(profharness.InputError, match="no run below traces"):
        profharness.open()
    for name, created in (("b", "2026-01-01T00:00:00Z"), ("a", "2026-02-01T00:00:00Z")):
        kept = tmp_path / "traces" / name
        run_of(kept, ranks=1, kernels=2)
        path = RunDir.open(kept).root / "manifest.json"
        path.write_text(path.read_text().replace("2026-01-02T03:04:05Z", created))
    (tmp_path / "traces" / "z").mkdir()
    (tmp_path / "traces" / "z" / "manifest.json").write_text("{")
    assert profharness.open().path == Path("traces/a")
    monkeypatch.setenv("PROFHARNESS_OUTPUT", str(tmp_path))
    with pytest.raises(profharness.InputError, match="no run below"):
        profharness.open()


def test_the_wrong_way_in_names_the_right_one(root, file, tmp_path):
    with pytest.raises(profharness.InputError) as told:
        profharness.open(file)
    assert f"profharness.read({str(file)!r})" in told.value.hint
    with pytest.raises(profharness.UsageError) as refused:
        profharness.read(root)
    assert f"profharness.open({str(root)!r})" in refused.value.hint
    with pytest.raises(profharness.InputError, match="is not a run directory"):
        profharness.open(tmp_path)
    with pytest.raises(profharness.InputError, match="no such file"):
        profharness.read(tmp_path / "none.json")
    with pytest.raises(profharness.UsageError, match="nothing to read"):
        profharness.read()
    with pytest.raises(profharness.UsageError, match="named twice"):
        profharness.read(file, file)
    with pytest.raises(profharness.UsageError, match="'kernels': no such rows"):
        profharness.read(file).hotspots(by="kernels")
    with pytest.raises(profharness.UsageError, match="no such pass"):
        profharness.read(file).hotspots(pass_name="torch")


def test_several_files_are_the_ranks_of_one_job(file, tmp_path, capsys):
    events = [launch("hipLaunchKernel", 4, 2, 1), kernel("other", 8, 5, correlation=1, device=1)]
    second = write(tmp_path / "second.json", document(events))
    both = profharness.read(file, second)
    shown = json.loads(printed(capsys, "metrics", file, second, "--json"))
    values = both.metrics().set_index("name")["value"]
    assert all(same(values[name], one["value"]) for name, one in shown["metrics"].items())
    assert both.hotspots("kernel")["total_ns"].sum() == 35_000
    with pytest.raises(profharness.UsageError, match="one clock"):
        both.trace()
    assert len(both.trace(allow_unaligned=True).kernels) == 2


def test_what_a_reader_lost_is_a_warning_at_the_users_line(file, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [')
    recording = profharness.read(file, bad)
    with pytest.warns(UserWarning, match="the file is left out") as told:
        recording.hotspots()
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="the file is left out") as told:
        assert recording.verdict is None or recording.verdict
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recording.hotspots(), recording.metrics()
    assert any(one.severity == "error" for one in recording.problems)


def test_a_notebook_shows_the_verdict_and_a_table_with_names_escaped(run, file, tmp_path):
    html = run._repr_html_()
    assert "<table>" in html
    assert "<th>point</th>" in html
    hostile = tmp_path / "<script>alert(1)<\u202ex.json"
    hostile.write_bytes(file.read_bytes())
    recording = profharness.read(hostile)
    html = recording._repr_html_()
    assert "<script" not in html
    assert "style=" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "\n" not in repr(recording)
    assert "\u202e" not in repr(recording)
    assert escape(recording.verdict["text"]) in html
