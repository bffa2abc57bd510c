"""Telemetry joined to kernels, operators and steps: exact means of made-up samples over made-up
records.
"""

from __future__ import annotations

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.hotspot_samples import with_samples
from profharness.analysis.kernels.hotspots import grouped
from profharness.analysis.power.sample_joins import Spans, integrals, named
from profharness.analysis.power.step_samples import with_samples as steps_with_samples
from profharness.analysis.run.kernel_pass import choose
from profharness.analysis.time.step_summaries import Selection, step_summaries
from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Source
from tests.analysis.scene import Scene
from tests.run_files import run_of

MS = 1_000_000


def means(scene: Scene, *metrics: str, by: str = "kernel") -> dict[str, list[float | None]]:
    trace = scene.build()
    _, records = choose(trace)
    return {
        row.name: [row.samples[metric].value for metric in metrics]
        for row in with_samples(grouped(records, by), records, trace, metrics).rows
    }


def clocked(
    scene: Scene, *values: float, every: int = 100, device: int = 0, metric: str = "clock_gpu"
) -> None:
    for number, value in enumerate(values):
        scene.sample(metric, number * every, number * every, value, device=device)


def test_the_mean_over_a_kernel_is_weighted_by_the_time_of_its_calls_in_each_sample():
    made = Scene()
    clocked(made, 1000, 2000, 1500, 1500)
    made.kernel(50, 110, name="gemm")  # 50 ns at 1000, 10 at 2000
    made.kernel(190, 220, name="gemm")  # 10 at 2000, 20 at 1500
    made.kernel(100, 200, name="add")
    found = means(made, "clock_gpu")
    assert found == {"gemm": [(50 * 1000 + 20 * 2000 + 20 * 1500) / 90], "add": [2000.0]}


def test_a_value_over_an_interval_holds_in_it_alone():
    made = Scene()
    for start, end, value in ((0, 100, 0.25), (100, 160, 0.5), (200, 300, 1.0)):
        made.sample("sm_activity", start, end, value, device=0)
    made.kernel(90, 120, name="inside")
    made.kernel(150, 210, name="over a gap")  # 20 of its 60 ns are covered
    assert means(made, "sm_activity") == {
        "inside": [(10 * 0.25 + 20 * 0.5) / 30],
        "over a gap": [None],
    }


def test_a_sample_holds_at_most_twice_as_long_as_usual():
    made = Scene()
    for at in (0, 100, 200, 1000, 1100, 1200):
        made.sample("clock_gpu", at, at, 1000, device=0)
    made.kernel(390, 400, name="held")
    made.kernel(500, 510, name="lost")
    made.kernel(1290, 1300, name="at the end")
    assert means(made, "clock_gpu") == {"held": [1000.0], "lost": [None], "at the end": [1000.0]}


def test_each_device_has_its_own_samples_and_the_node_the_same_for_all():
    made = Scene(devices=(Device("0", identity="a"), Device("1", identity="b")))
    clocked(made, 1000, 1000, device=0)
    clocked(made, 2000, 2000, device=1)
    clocked(made, 3, 3, device=NULL, metric="memory_tree")
    made.kernel(0, 50, name="first", device=0)
    made.kernel(0, 50, name="second", device=1)
    made.kernel(0, 30, name="both", device=0)
    made.kernel(0, 90, name="both", device=1)
    assert means(made, "clock_gpu", "memory_tree") == {
        "first": [1000, 3],
        "second": [2000, 3],
        "both": [(30 * 1000 + 90 * 2000) / 120, 3],
    }


def test_a_device_without_address_is_found_by_its_number_and_the_power_of_a_package_is_that_of_its_dies():
    telemetry = Source(
        "n.parquet", "telemetry", host="n", details=(("package.a", "a"), ("package.b", "a"))
    )
    made = Scene(
        sources=(telemetry, Source("t.json", "kineto", host="n", pid=7)),
        devices=(
            Device("0", host="n", identity="a"),
            Device("1", host="n", identity="b"),
            Device("1", host="n"),
        ),
    )
    clocked(made, 1000, 1000, device=0)
    clocked(made, 2000, 2000, device=1)
    clocked(made, 400, 400, device=0, metric="power_w")
    made.kernel(0, 50, device=2, source=1)
    assert means(made, "clock_gpu", "power_w") == {"k": [2000, 400]}


def test_only_the_chosen_pass_counts_and_telemetry_belongs_to_none():
    sources = (
        Source("b", "kineto", pass_name="rocprofv3", layer="rocprofv3", host="n"),
        Source("a", "kineto", pass_name="torch", layer="torch", host="n"),
        Source("t", "telemetry", host="n"),
    )
    made = Scene(sources=sources, devices=(Device("7"), Device("0", identity="x")))
    clocked(made, 1000, 2000, device=1)
    made.rows["samples"] = [{**row, "source": 2} for row in made.rows["samples"]]
    made.kernel(0, 10, source=1, device=1)
    made.kernel(120, 130, source=0, device=1)
    assert means(made, "clock_gpu") == {"k": [2000]}


def test_by_category_and_by_operator():
    made = Scene()
    clocked(made, 1000, 2000)
    mm, add = made.op("aten::mm", 0, 10), made.op("aten::add", 10, 20)
    made.op("aten::view", 20, 30)
    made.kernel(0, 50, name="gemm_kernel", op=mm)
    made.kernel(150, 180, name="elementwise_kernel", op=add)
    made.copy(90, 110)
    assert means(made, "clock_gpu", by="op") == {
        "aten::mm": [1000],
        "aten::add": [2000],
        "aten::view": [None],
    }
    assert means(made, "clock_gpu", by="category") == {
        "gemm": [1000],
        "elementwise": [2000],
        "copy": [1500],
    }


def test_operators_of_a_cpu_run_count_their_own_time():
    made = Scene()
    clocked(made, 1, 3, 3, device=NULL, metric="cpu_tree")
    made.op("aten::linear", 0, 200)
    made.op("aten::mm", 100, 200)
    assert means(made, "cpu_tree", by="op") == {"aten::linear": [1], "aten::mm": [3]}


def test_where_one_value_holds_longer_than_a_call_it_says_so():
    made = Scene()
    clocked(made, 1000, 1000, every=MS)
    made.kernel(0, MS // 2, name="short")
    made.kernel(0, 2 * MS, name="long")
    trace = made.build()
    notes = {
        row.name: row.samples["clock_gpu"].note
        for row in with_samples(grouped(trace, "kernel"), trace, trace, ["clock_gpu"]).rows
    }
    assert notes["short"].startswith("one value every 1.000 ms, longer than the records")
    assert not notes["long"]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), min_size=1, max_size=6),
)
def test_integrals_are_those_counted_ns_by_ns(pieces, records):
    """Samples that touch, each `length` ns long, and records anywhere."""
    made, at, values = Scene(), 10, np.full(200, np.nan)
    for length, value in pieces:
        made.sample("power_energy", at, at + length, value, device=0)
        values[at : at + length] = value
        at += length
    start = np.array([one for one, _ in records])
    end = start + np.array([length for _, length in records])
    found = integrals(
        made.build(),
        "power_energy",
        Spans(start, end, np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)),
    )
    assert found.value.tolist() == [
        float(np.nansum(values[low:high])) for low, high in zip(start, end, strict=True)
    ]
    assert found.covered_ns.tolist() == [
        float(np.isfinite(values[low:high]).sum()) for low, high in zip(start, end, strict=True)
    ]


def test_each_step_has_its_telemetry_and_its_energy_where_it_is_long_enough():
    made = Scene()
    edges = range(0, 12_000 * MS, 100 * MS)
    for at in edges:
        made.sample("power_w", at, at, 200.0 if at < 4_000 * MS else 500.0, device=0)
        made.sample("cpu_tree", at, at + 100 * MS, 1.0 if at < 4_050 * MS else 2.0)
    bounds = (0, 4_000, 10_000, 10_030)
    for number, (start, end) in enumerate(pairwise(bounds)):
        made.mark("step", start * MS, end * MS, f"step {number}")
        made.kernel(start * MS, end * MS)
    trace = made.build()
    first, second, short = (
        step.metrics
        for step in steps_with_samples(
            step_summaries(trace, KernelFacts(trace), Selection()), trace
        )
    )
    assert (first["cores_used"].value, second["cores_used"].value) == (
        1.0,
        pytest.approx(2 - 1 / 60),
    )
    assert second["power_w"].value == pytest.approx(500, rel=1e-3)
    assert second["energy"].value == pytest.approx(3000, rel=1e-3)
    assert (short["power_w"].value, short["energy"].value) == (500, None)
    assert "every 100.0 ms" in short["power_w"].note
    assert short["energy"].needs == "a longer step: 20 periods of the power sensor"


def test_metrics_are_asked_for_by_name_or_by_first_word():
    made = Scene(sources=(Source("t", "telemetry", details=(("missing.wave_fill", "no KFD"),)),))
    for metric in ("clock_memory", "clock_gpu", "power_average", "cpu_tree", "memory_activity"):
        clocked(made, 1, metric=metric)
    trace = made.build()
    assert named("power,clock, clock_memory,cores_used,clock", trace) == (
        "power_average",
        "clock_gpu",
        "clock_memory",
        "cpu_tree",
    )
    with pytest.raises(UsageError, match="--samples powr: there is no such metric") as failure:
        named("powr", trace)
    assert "sampled here: memory_activity, power_average" in failure.value.hint
    with pytest.raises(UsageError, match=r"--samples wave_fill: not sampled here \(no KFD\)"):
        named("wave_fill", trace)
    with pytest.raises(UsageError, match="names no metrics"):
        named("power,", trace)
    with pytest.raises(UsageError, match="no such metric") as failure:
        named("power", Scene().build())
    assert "nothing was sampled" in failure.value.hint


@pytest.mark.slow
def test_of_a_run_on_the_command_line(tmp_path, capsys):
    """Two hosts, whose device 0 draws 300 W and 301 W while the kernels run; both trees take a
    tenth of a core.
    """
    root = run_of(tmp_path / "run").root
    assert (
        run_cli(["hotspots", str(root), "--samples", "cpu", "--json"]) == 0
    )  # of the other pass, a minute later
    assert {
        row["samples"]["cpu_tree"]["needs"] for row in json.loads(capsys.readouterr().out)["rows"]
    } == {"samples in that time"}
    assert (
        run_cli(
            ["hotspots", str(root), "--pass", "torch", "--samples", "power,cores_used", "--json"]
        )
        == 0
    )
    table = json.loads(capsys.readouterr().out)
    assert all(row["samples"]["cpu_tree"]["value"] == pytest.approx(0.1) for row in table["rows"])
    power = [row["samples"]["power"]["value"] for row in table["rows"]]
    assert all(200 <= value <= 301 for value in power)
    assert (
        run_cli(["hotspots", str(root), "--pass", "torch", "--samples", "cpu", "--top", "1"]) == 0
    )
    head, row, *_, note = [line for line in capsys.readouterr().out.splitlines()[1:] if line]
    assert head.split()[-4:] == ["cores", "used", "category", "name"]
    assert "0.1 cores" in row
    assert note.startswith("cores used: one value every 100.0 ms")
    assert (
        run_cli(["hotspots", str(root), "--pass", "torch", "--samples", "cpu", "--format", "csv"])
        == 0
    )
    assert capsys.readouterr().out.splitlines()[0].endswith(",cpu_tree (cores)")
    root = run_of(tmp_path / "torch alone", lend=False).root
    assert run_cli(["metrics", str(root), "--steps", "0:2", "--samples", "cpu", "--json"]) == 0
    assert [
        one["metrics"]["cores_used"]["value"]
        for one in json.loads(capsys.readouterr().out)["steps"]
    ] == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("hotspots", "RUN", "--samples", "powerful"),
            "--samples powerful: there is no such metric",
        ),
        (("hotspots", "FILE", "--samples", "power_w"), "not sampled here"),
        (("hotspots", "FILE", "OTHER", "--samples", "power"), "--samples is for one run or file"),
        (("metrics", "RUN", "--samples", "power"), "--samples belongs to --steps"),
    ],
)
def test_wrong_calls(tmp_path, capsys, words, said):
    run = run_of(tmp_path / "run", ranks=1, lend=False)
    file = next(run.root.rglob("trace.json.gz"))
    other = shutil.copy(file, tmp_path / "other.json.gz")
    places = {"RUN": str(run.root), "FILE": str(file), "OTHER": str(other)}
    assert run_cli([places.get(word, word) for word in words]) == 2
    assert said in capsys.readouterr().err
