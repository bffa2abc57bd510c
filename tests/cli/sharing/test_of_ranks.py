"""`report` of the files of several ranks: how well their devices were used, joined over all of
them.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.parts import combine
from profharness.analysis.pictures.records import Strip
from profharness.report.page import html as html_page
from profharness.report.text.figures import si_text
from profharness.understand.loose.summaries import summarise_paths
from profharness.understand.many.figures import part_of
from profharness.understand.many.jobs import FileGroup
from profharness.units import format_ns, format_number, format_share
from tests.cli.sharing.conftest import event
from tests.report.sheets.browser import data_of, dom_of, needs_browser

OPERATORS = ("aten::mm", "aten::addmm", "aten::copy_")
SQUARE = [512, 512]
DIMS = ([SQUARE, SQUARE], [[512], SQUARE, SQUARE], [SQUARE, SQUARE])


def rank_text(rank: int, *, kernels: int = 3, shapes: bool = True, long_names: int = 0) -> str:
    """A trace of operators that launch a kernel each; those of higher ranks take longer."""
    events = []
    for at in range(kernels):
        start = 100.0 * at
        name = f"gemm_{at}_{'x' * long_names}" if long_names else f"gemm_{at % 3}"
        operator = event("cpu_op", OPERATORS[at % 3], start, 20.0)
        if shapes:
            dims = DIMS[at % 3]
            operator["args"].update({"Input Dims": dims, "Input type": ["float"] * len(dims)})
        call = event("cuda_runtime", "hipLaunchKernel", start + 2, 2.0, correlation=at + 1)
        kernel = event("kernel", name, start + 5, 40.0 + rank + at, correlation=at + 1)
        kernel["args"].update({"grid": [52, 1, 1], "block": [256, 1, 1]})
        events += [operator, call, kernel]
    return json.dumps(
        {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 128},
            "deviceProperties": [{"id": 0, "name": "AMD Instinct MI250X", "numSms": 110}],
            "traceEvents": events,
        }
    )


def ranks_in(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"rank{rank}.json" for rank in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def cells_of(page: Path, heading: str) -> list[list[str]]:
    """The texts of the rows of the first table after a heading."""
    after = page.read_text().partition(f"<h3>{heading}</h3>")[2]
    body = after.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [html.unescape(re.sub("<[^>]+>", "", cell)).strip() for cell in row.split("</td>")[:-1]]
        for row in body.split("</tr>")[:-1]
    ]


def use_section(page: Path) -> str:
    section = page.read_text().partition('<section id="use">')[2].partition("</section>")[0]
    return html.unescape(re.sub("<[^>]+>", "", section))


def test_the_table_of_operators_holds_the_figures_of_hotspots(here, tmp_path, out):
    ranks = ranks_in(tmp_path, *map(rank_text, range(3)))
    out("report", *ranks)
    told = json.loads(out("hotspots", *ranks, "--by", "op", "--json"))
    rows = sorted(told["rows"], key=lambda row: -(row["excess_ns"] or 0.0))
    expected = [
        [
            row["name"],
            format_number(row["calls"]),
            format_ns(row["excess_ns"], 3),
            format_ns(row["device_ns"], 3),
            f"{format_ns(low, 3)} to {format_ns(low + 2000, 3)}",
            format_share(row["device_share"]),
            "" if row["flops_per_s"] is None else si_text(row["flops_per_s"], "FLOP/s"),
            si_text(row["bytes_per_s"], "B/s"),
            format_share(row["peak_share"]),
            row["limiter"],
        ]
        for row in rows
        for low in (1000 * (40 + OPERATORS.index(row["name"])),)
    ]
    assert {row[0] for row in expected} == set(OPERATORS)
    assert cells_of(here / "rank0.report.html", "Operators by excess") == expected
    drawn = re.findall(r'data-plot="([^"]*)"', (here / "rank0.report.html").read_text())
    assert {"work-roofline", "strip", "fill-peak"} <= set(drawn)


def test_timelines_stand_below_each_other_and_flame_graphs_are_summed(tmp_path: Path) -> None:
    ranks = ranks_in(tmp_path, *map(rank_text, range(3)))
    summary = summarise_paths(ranks, for_page=True)
    assert summary.pictures is not None
    strips = summary.pictures.strips.strips
    assert [one.device for one in strips] == ["0 of rank 0", "0 of rank 1", "0 of rank 2"]
    assert summary.partition is not None
    assert sum(one.totals()["compute_ns"] for one in strips) == summary.partition.compute_ns
    alone = [summarise_paths([rank], for_page=True).pictures for rank in ranks]
    assert [replaced(one) for one in strips] == [
        replaced(pictures.strips.strips[0]) for pictures in alone if pictures is not None
    ]
    (flame,) = summary.pictures.flames
    singles = [pictures.flames[0] for pictures in alone if pictures is not None]
    assert flame.total_ns == sum(one.total_ns for one in singles)
    assert sorted(flame.names) == sorted(singles[0].names)
    plain = summarise_paths(ranks)
    assert plain.pictures is not None
    assert plain.pictures.strips.strips == plain.pictures.flames == ()


def replaced(strip: Strip) -> Strip:
    """The strip without its name and clock, which several files change."""
    return msgspec.structs.replace(
        strip, device="", start_ns=0, end_ns=strip.end_ns - strip.start_ns
    )


def test_metrics_of_the_ranks_say_the_same_known_work(here, tmp_path, out):
    ranks = ranks_in(tmp_path, *map(rank_text, range(2)))
    told = out("report", *ranks, "--json")
    assert told == out("metrics", *ranks, "--json")
    work = json.loads(told)["work"]
    section = use_section(here / "rank0.report.html")
    assert f"Matrix kernels took {format_ns(work['matrix_kernel_ns'], 3)}" in section


def test_a_rank_whose_work_cannot_be_known_is_named(here, tmp_path, out):
    texts = [rank_text(0), rank_text(1), rank_text(2, shapes=False)]
    out("report", *ranks_in(tmp_path, *texts))
    section = use_section(here / "rank0.report.html")
    assert "3 together: calls, times and work are summed over them." in section
    assert "1 of them (rank2.json) adds no work: it needs the shapes of the operators'" in section


def test_without_any_known_work_the_page_says_what_it_takes(here, tmp_path, out):
    out("report", *ranks_in(tmp_path, *[rank_text(rank, shapes=False) for rank in range(2)]))
    section = use_section(here / "rank0.report.html")
    assert "needs the shapes of the operators' inputs" in section
    assert "adds no work" not in section


def test_a_file_that_is_alone_readable_has_its_own_table(here, tmp_path, out):
    ranks = ranks_in(tmp_path, rank_text(0), "no trace")
    out("report", *ranks)
    page = here / "rank0.report.html"
    assert cells_of(page, "Operators by excess")[0][0] == "aten::copy_"
    assert "together" not in use_section(page)


def test_the_page_of_128_ranks_stays_small(tmp_path):
    path = tmp_path / "rank0.json"
    path.write_text(rank_text(0, kernels=900, long_names=200))
    read = part_of(FileGroup((path,)), Yardstick(), pieces=100)
    parts = [
        replace(read, summary=msgspec.structs.replace(read.summary, source=f"rank{rank}.json"))
        for rank in range(128)
    ]
    page = tmp_path / "page.html"
    page.write_text(html_page.render(combine(parts, "128 files")))
    assert page.stat().st_size < html_page.SIZE_LIMIT
    assert "128 together" in use_section(page)
    assert {row[1] for row in cells_of(page, "Operators by excess")} == {format_number(128 * 300)}


@needs_browser
@pytest.mark.slow
def test_the_page_of_several_ranks_runs_in_a_browser_without_a_complaint(here, tmp_path, out):
    out("report", *ranks_in(tmp_path, *map(rank_text, range(4))))
    dom = dom_of(here / "rank0.report.html", here, "")
    assert data_of(dom).get("errors") is None
    assert 'id="use"' in dom
