"""Runs and files as pandas frames: the same figures as the commands', and not a nanosecond lost."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from profharness.cli import run_cli
from profharness.errors import InputError, UsageError
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.understand import frames
from profharness.understand.load import load
from profharness.understand.session.tables import trace_frame
from tests.generated import Generated
from tests.readers.kineto.kineto_files import document, event, kernel, launch, write
from tests.run_files import run_of
from tests.trace.making import traces


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("frames") / "run"
    run_of(root)
    return root


def printed(capsys: pytest.CaptureFixture[str], *line: str | Path) -> str:
    capsys.readouterr()
    assert run_cli([str(word) for word in line]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("by", "pass_name"),
    [
        (None, None),
        ("kernel", "torch"),
        ("op", "torch"),
        ("op", None),
        ("range", "torch"),
        ("category", None),
        ("call", None),
    ],
)
def test_hotspots_are_those_of_the_command(run, capsys, by, pass_name):
    wanted = () if by is None else ("--by", by)
    wanted += () if pass_name is None else ("--pass", pass_name)
    text = printed(capsys, "hotspots", run, *wanted, "--format", "csv")
    document = json.loads(printed(capsys, "hotspots", run, *wanted, "--format", "json"))
    frame = frames.hotspots(run, by, pass_name=pass_name)
    shown = pd.read_csv(io.StringIO(text), float_precision="round_trip")
    pd.testing.assert_frame_equal(frame, shown, check_dtype=False)
    assert len(frame)
    assert frame["total_ns"].dtype == "int64"
    assert {key: frame.attrs[key] for key in ("by", "pass", "total_ns")} == {
        key: document[key] for key in ("by", "pass", "total_ns")
    }


def test_rows_that_kernels_pass_lacks_are_of_the_pass_that_has_them(run, capsys):
    assert frames.hotspots(run).attrs["pass"] == "rocprofv3"
    assert frames.hotspots(run, "op", pass_name="rocprofv3").empty
    found = frames.hotspots(run, "op")
    assert found.attrs["pass"] == "torch"
    pd.testing.assert_frame_equal(found, frames.hotspots(run, "op", pass_name="torch"))
    capsys.readouterr()
    assert run_cli(["hotspots", str(run), "--by", "op"]) == 0
    shown = capsys.readouterr()
    assert "pass rocprofv3 has no rows by op: these are of pass torch" in shown.err
    assert ", pass torch" in shown.out.splitlines()[0]
    assert run_cli(["hotspots", str(run), "--by", "op", "--format", "folded"]) == 0
    assert "aten::" in capsys.readouterr().out


def test_modules_and_stacks_of_a_run_are_read_where_rows_need_them(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", ranks=1, lend=False)
    path = next(run.root.rglob("trace.json.gz"))
    base = json.loads(gzip.decompress(path.read_bytes()))["baseTimeNanoseconds"]
    events = [
        event("python_function", "train.py(3): main", 0, 20),
        event("python_function", "nn.Module: Net_0", 2, 10),
        launch("hipLaunchKernel", 4, 2, 1),
        kernel("k", 8, 3, correlation=1),
    ]
    write(path, document(events, baseTimeNanoseconds=base))
    for by, name in (("module", "Net_0"), ("stack", "train.py(3): main")):
        frame = frames.hotspots(run.root, by, pass_name="torch")
        assert frame[["name", "device_ns"]].values.tolist() == [[name, 3000]]
        assert frame.attrs["device_ns_outside"] == 0


@pytest.mark.slow
def test_hotspots_of_several_files_are_those_of_the_command(ranks: list[Generated], capsys):
    paths = [one.path for one in ranks]
    text = printed(capsys, "hotspots", *paths, "--format", "csv")
    shown = pd.read_csv(io.StringIO(text), float_precision="round_trip")
    pd.testing.assert_frame_equal(frames.hotspots(paths), shown, check_dtype=False)


def test_kernels_of_a_run_add_up_to_its_hotspots(run):
    frame = frames.kernels(run)
    table = frames.hotspots(run, "kernel").set_index("name")["total_ns"]
    sums = frame.groupby("name", observed=True)["dur_ns"].sum()
    assert {str(name): int(total) for name, total in sums.items()} == table.to_dict()
    assert set(frame["pass"].unique()) == {"rocprofv3"}
    assert set(frames.kernels(run, pass_name="torch")["pass"].unique()) == {"torch"}


def test_kernels_of_a_file_are_those_that_the_generator_made(ranks: list[Generated]):
    frame = frames.kernels(ranks[0].path)
    found = frame.groupby("name", observed=True)["dur_ns"].agg(["count", "sum"])
    assert {
        str(name): (int(count), int(total)) for name, count, total in found.itertuples()
    } == ranks[0].totals


@pytest.mark.slow
@given(traces())
def test_every_column_says_what_the_trace_says(trace: Trace):
    strings = trace.strings
    named = {
        "devices": [device.index for device in trace.devices],
        "streams": [stream.name for stream in trace.streams],
        "sources": [source.path for source in trace.sources],
        "ops": strings.decode(trace.ops.name),
    }
    for table in (trace.kernels, trace.samples):
        frame = trace_frame(trace, table)
        assert len(frame) == len(table)
        for column in fields(table):
            values, unit = getattr(table, column.name), column.metadata["unit"]
            found = [None if pd.isna(value) else value for value in frame[column.name]]
            if unit == "ns":
                assert frame[column.name].dtype == "int64"
                assert found == values.tolist()
            elif unit == "string":
                assert found == [text or None for text in strings.decode(values)]
            elif unit == "index":
                pool = named[column.metadata["of"]]
                assert found == [pool[at] or None if at != NULL else None for at in values]
            else:
                gone = np.isnan(values) if values.dtype.kind == "f" else values == NULL
                expected = [
                    None if one else value for value, one in zip(values.tolist(), gone, strict=True)
                ]
                assert found == expected


def test_nanoseconds_beyond_what_a_float_holds_stay_exact(tmp_path: Path):
    base = 1_751_000_000_000_000
    path = write(
        tmp_path / "a.json",
        document([kernel("k", base, 0.001), kernel("k", base + 1, 1e9)], baseTimeNanoseconds=3),
    )
    frame = frames.kernels(path)
    assert sorted(frame["dur_ns"]) == [1, 10**12]
    starts = sorted(frame["start_ns"])
    assert starts[1] - starts[0] == 1000
    assert starts == sorted(load([path]).trace.kernels.start_ns.tolist())


def test_a_frame_is_the_users_own(run):
    frame = frames.kernels(run)
    before = frame["rank"].copy()
    frame["dur_ns"] += 1
    frame.loc[0, "rank"] = 77
    again = frames.kernels(run)
    assert (frame["dur_ns"] - again["dur_ns"]).eq(1).all()
    assert again["rank"].equals(before)


@pytest.mark.slow
def test_points_are_those_of_the_report(run, capsys):
    shown = json.loads(printed(capsys, "report", run, "--json", "--force"))["points"]
    details = json.loads(printed(capsys, "metrics", run, "--json"))["points"]
    frame = frames.points(run)
    assert frame["point"].tolist() == [point["point"] for point in shown]
    for row, point, detail in zip(frame.to_dict("records"), shown, details, strict=True):
        assert row["trials"] == point["trials"]
        for name in ("verdict", "verdict_needs", "partition", "work"):
            assert point[name] == detail[name]
        assert row["state"] == point.get("state", "ok")
        for name in ("throughput", "latency_mean"):
            figure = detail["metrics"][name]
            for key, end in (("value", ""), ("low", "_low"), ("high", "_high")):
                assert row[name + end] == pytest.approx(figure[key], rel=0, abs=0, nan_ok=True)
            assert frame.attrs["units"][name] == figure["unit"]
        plain = {
            name
            for name, value in point.items()
            if not isinstance(value, dict | list) and name not in ("verdict", "verdict_needs")
        }
        assert {"throughput_sem", "latency_ms", "consistency"} <= plain
        for name in plain:
            assert row[name] == pytest.approx(point[name], rel=0, abs=0, nan_ok=True)


def test_metrics_are_those_of_the_command(run, capsys):
    shown = json.loads(printed(capsys, "metrics", run, "--json"))
    frame = frames.metrics(run)
    whole = frame[frame["point"].isna()].set_index("figure")
    assert list(whole.index) == list(shown["metrics"])
    for name, figure in shown["metrics"].items():
        value = whole.loc[name, "value"]
        assert (None if pd.isna(value) else value) == figure["value"]
        assert (whole.loc[name, "unit"], whole.loc[name, "needs"]) == (
            figure["unit"],
            figure["needs"],
        )
    of_points = {point["point"]: list(point["metrics"]) for point in shown["points"]}
    assert (
        frame.dropna(subset="point").groupby("point", sort=False)["figure"].agg(list).to_dict()
        == of_points
    )


@pytest.mark.slow
def test_metrics_of_several_files_are_those_of_the_command(ranks: list[Generated], capsys):
    paths = [one.path for one in ranks]
    shown = json.loads(printed(capsys, "metrics", *paths, "--json"))["metrics"]
    frame = frames.metrics(paths).set_index("figure")["value"]
    assert {name: None if pd.isna(value) else value for name, value in frame.items()} == {
        name: figure["value"] for name, figure in shown.items()
    }


def test_telemetry_is_that_of_the_run_with_units_and_hosts(run):
    frame = frames.telemetry(run)
    samples = load([run]).trace.samples
    assert frame["at_ns"].tolist() == samples.at_ns.tolist()
    assert frame["value"].tolist() == samples.value.tolist()
    assert frame["until_ns"].dtype == "int64"
    assert set(frame.dropna(subset="device")["host"]) == {"n0", "n1"}
    assert set(frame.loc[frame["metric"] == "cpu_tree", "unit"]) == {"cores"}
    power = frame[frame["metric"] == "power"].groupby(["host", "device"], observed=True)["value"]
    assert power.min().to_dict() == {
        ("n0", "0"): 300.0,
        ("n0", "1"): 200.0,
        ("n1", "0"): 301.0,
        ("n1", "1"): 200.0,
    }


def test_errors_are_the_products_own(run, tmp_path: Path):
    with pytest.raises(InputError, match="there is no such file"):
        frames.kernels(tmp_path / "none")
    with pytest.raises(UsageError, match="no such pass"):
        frames.kernels(run, pass_name="nvprof")
    with pytest.raises(UsageError, match="nothing to read"):
        frames.hotspots([])
    with pytest.raises(UsageError, match="named twice"):
        frames.metrics([run, run])
    with pytest.raises(UsageError, match="'kernels': no such rows"):
        frames.hotspots(run, "kernels")  # type: ignore[arg-type]  # which is wrong
    path = write(tmp_path / "a.json", document([kernel("k", 1, 1)]))
    with pytest.raises(UsageError, match="is no run"):
        frames.points(path)
    with pytest.raises(UsageError, match="no such pass"):
        frames.hotspots(path, pass_name="torch")


def test_what_a_reader_lost_is_a_warning_at_the_users_line(tmp_path: Path):
    good = write(tmp_path / "good.json", document([kernel("k", 1, 1)]))
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [')
    with pytest.warns(UserWarning, match="the file is left out") as told:
        frame = frames.hotspots([good, bad])
    assert frame["calls"].tolist() == [1]
    assert told[0].filename == __file__


def test_pandas_is_loaded_only_for_a_frame():
    code = (
        "import sys; from profharness.understand import frames; import profharness.cli.hotspots; "
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
