"""The table of hotspots as a terminal of 100 characters shows it."""

from __future__ import annotations

import pytest

from profharness.analysis.kernels.tally import Grouping
from profharness.analysis.records import HotspotRow, Hotspots
from profharness.report.text.hotspots import plain_table

SHAPES = "[[512],[141,2048],[2048,512],[],[]]"
TYPES = '["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar"]'


def row(name: str = "aten::addmm", **fields: object) -> HotspotRow:
    whole: dict[str, object] = {
        "name": name,
        "category": "gemm",
        "calls": 3591,
        "total_ns": 441_000,
        "share": 0.5,
        "mean_ns": 122.8,
        "median_ns": 120.0,
        "min_ns": 100,
        "max_ns": 900,
        "std_ns": 1.0,
        "device_ns": 98_718_000,
        "device_share": 0.319,
        "flops_per_s": 1.068e14,
        "bytes_per_s": 2e12,
        "peak_share": 0.2896,
        "limiter": "inside-kernel",
        "excess_ns": 70_100_000.0,
        **fields,
    }
    return HotspotRow(**whole)  # type: ignore[arg-type]  # the fields above


def table(by: Grouping, *rows: HotspotRow, outside_ns: int | None = 1_282_000) -> Hotspots:
    return Hotspots(
        by=by,
        total_ns=882_000,
        rows=rows,
        busy_ns=90_000_000,
        busy_any_ns=99_000_000,
        device_span_ns=180_000_000,
        device_ns_outside=outside_ns,
    )


def test_device_time_comes_first_and_everything_fits() -> None:
    few_bytes = row(
        "aten::scaled_dot_product_attention_for_a_long_name",
        flops_per_s=None,
        peak_share=0.004,
        limiter="undetermined",
        device_ns=1,
    )
    text = plain_table(table("op", row(), few_bytes), 5, 100)
    folded, of_the_known = "scaled_dot_produ…ng_name", "(else bytes/s) of the work that is known"
    assert text.splitlines() == [
        "by op, 100.0 ms of device time: 98.7 % launched inside of an operator, 1.3 % outside",
        "on the host 882.0 µs in 7\u2009182 calls",
        "kernels ran 50.0 % of the devices' 180.0 ms between first and last record",
        " device   share    host  calls         rate   peak  limiter         excess  name",
        "98.7 ms  31.9 %  441 µs  3\u2009591  107 TFLOP/s   29 %  inside-kernel  70.1 ms  aten::addmm",
        f"   1 ns  31.9 %  441 µs  3\u2009591     2.0 TB/s  < 1 %  -{' ' * 14}70.1 ms  {folded}",
        f"1.28 ms   1.3 %       -      -            -      -  -{' ' * 20}-  outside",
        f"rate, peak, excess: FLOP/s {of_the_known}, its share of the nearer",
        "ceiling, and the time above the least that the ceilings allow",
    ]
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("by", "named", "shown"),
    [
        (
            "shape",
            row(shapes=SHAPES, dtypes=TYPES),
            "    aten::addmm(512, 141×2048, 2048×512) bf16",
        ),
        ("shape", row(shapes=None, dtypes=None), "    aten::addmm"),
        (
            "module",
            row("/".join(f"Layer_{number}" for number in range(20))),
            "    …/" + "/".join(f"Layer_{number}" for number in range(10, 20)),
        ),
        (
            "stack",
            row("<built-in function linear> < site/nn/linear.py(12): forward < /a/b.py(3): main"),
            "    <built-in function linear> < linear.py(12): forward < b.py(3): main",
        ),
    ],
)
def test_long_names_stand_on_a_line_of_their_own(
    by: Grouping, named: HotspotRow, shown: str
) -> None:
    lines = plain_table(table(by, named), 5, 100).splitlines()
    assert lines[3].endswith("excess")
    assert lines[5] == shown
    assert max(map(len, lines)) <= 100
    whole = plain_table(table(by, named), 5, None).splitlines()
    assert whole[3].startswith("98.7 ms")
    assert whole[3].endswith(shown.strip() if by == "shape" else named.name)


def test_names_that_are_cut_alike_are_numbered() -> None:
    stacks = [row("f" * 200 + f" < {number}") for number in range(2)]
    lines = plain_table(table("stack", *stacks), 5, 100).splitlines()
    assert lines[5] != lines[7]


@pytest.mark.parametrize("by", ["op", "shape", "range", "module", "stack"])
@pytest.mark.parametrize("top", [1, 5])
def test_device_time_of_no_row_is_the_last_row(by: Grouping, top: int) -> None:
    made = table(by, row(device_ns=75_000_000), row(device_ns=0), outside_ns=25_000_000)
    lines = plain_table(made, top, None).splitlines()
    outside = lines[3 + min(top, 2)]
    assert outside.split()[:4] == ["25.0", "ms", "25.0", "%"]
    assert outside.endswith("  outside")
    assert "  outside" not in plain_table(table(by, row(), outside_ns=0), top, None)


def test_all_inside_is_said_and_a_cpu_keeps_its_columns() -> None:
    inside = plain_table(table("range", row(), outside_ns=0), 5, 100).splitlines()[0]
    assert inside == "by range, 98.72 ms of device time, all of it launched inside of a range"
    lines = plain_table(table("op", row(peak_share=None), outside_ns=None), 5, 100).splitlines()
    assert lines[2].split() == ["share", "total", "calls", "mean", "min", "max", "category", "name"]
    assert len(lines) == 4


def test_kernels_whose_work_is_known_show_it() -> None:
    lines = plain_table(table("kernel", row("gemm"), outside_ns=None), 5, 100).splitlines()
    assert lines[2].split() == [
        *("share", "total", "calls", "mean", "rate", "peak", "limiter", "excess", "name")
    ]
    assert "107 TFLOP/s" in lines[3]


@pytest.mark.parametrize("width", [None, 120])
def test_how_long_kernels_ran_stands_beside_the_total_where_it_fits(width: int | None) -> None:
    lines = plain_table(table("kernel", row("gemm"), outside_ns=None), 5, width).splitlines()
    assert lines[0] == (
        "by kernel, 882.0 µs in 3\u2009591 calls; "
        "kernels ran 50.0 % of the devices' 180.0 ms between first and last record"
    )
    assert [line for line in lines if "of device time" in line] == []


UNKNOWN = {"flops_per_s": None, "bytes_per_s": None, "peak_share": None, "excess_ns": None}
OF_WORK = "rate, peak, excess: FLOP/s (else bytes/s) of the work that is known"


@pytest.mark.parametrize(
    ("known", "shown"),
    [("flops_per_s", "107 TFLOP/s"), ("bytes_per_s", "2.0 TB/s"), ("peak_share", "29 %")],
)
def test_any_rate_of_a_kernel_is_shown_without_ceilings_too(known: str, shown: str) -> None:
    fields = {key: value for key, value in UNKNOWN.items() if key != known}
    rows = (row("gemm", **fields), row("other", **UNKNOWN))
    text = plain_table(table("kernel", *rows, outside_ns=None), 5, 100)
    assert "rate" in text.splitlines()[2].split()
    assert shown in text.splitlines()[3]
    assert OF_WORK in text


def test_what_the_columns_of_work_mean_is_said_where_they_stand() -> None:
    of_operators = plain_table(table("op", row(**UNKNOWN)), 5, 100)
    assert OF_WORK in of_operators
    assert "excess" in of_operators.splitlines()[3].split()
    of_kernels = plain_table(table("kernel", row("gemm", **UNKNOWN), outside_ns=None), 5, 100)
    assert OF_WORK not in of_kernels
    assert "rate" not in of_kernels.splitlines()[2].split()
