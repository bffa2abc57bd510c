"""Tables of how well the device was used."""

from __future__ import annotations

import msgspec

from profharness.analysis.use.records import (
    FilesRow,
    FilesUse,
    OperatorCounter,
    UnknownWork,
    UseRow,
)
from profharness.report.csv import csv_text
from profharness.report.table import as_objects
from profharness.report.tables.use import (
    ceilings_text,
    files_text,
    inputs_text,
    known_work_text,
    labels,
    matched_text,
    operator_counter_table,
    operator_table,
    outside_text,
)
from tests.report.samples import command

USE = command().use
assert USE is not None


def test_the_most_excess_stands_first_with_its_figures() -> None:
    table = operator_table(USE)
    assert table is not None
    first = as_objects(table)[0]
    row = USE.operators[0]
    assert (first["operator"], first["excess_ns"]) == (row.name, row.excess_ns)
    assert [cell.bar for cell in table.rows[0] if cell.bar is not None] == [100.0]
    assert csv_text(table).splitlines()[1].startswith("aten::addmm,1240,1000000000.0,1400000000,")


def test_operators_of_next_to_nothing_are_left_out_and_counted() -> None:
    small = UseRow(name="aten::tiny", calls=1, device_ns=10, share=1e-9)
    table = operator_table(msgspec.structs.replace(USE, operators=(*USE.operators, small)))
    assert table is not None
    assert "aten::tiny" not in [row[0].text for row in table.rows]
    assert table.left_out == 1
    assert operator_table(None) is None


def test_known_work_is_told_with_the_rest_by_reason() -> None:
    text = known_work_text(USE)
    assert "the work of 80.0 % of that time is known" in text
    assert text.endswith("The rest: graph replay 20.0 %.")
    assert known_work_text(None) == ""
    assert outside_text(USE).startswith("5.0 % of the device time")


def test_a_ceiling_that_is_not_known_is_named() -> None:
    assert ceilings_text(USE) == ""
    assert ceilings_text(None) == ""
    without = msgspec.structs.replace(USE, roofs=())
    assert ceilings_text(without).startswith("the compute ceiling is not known")
    without = msgspec.structs.replace(USE, bandwidth=None)
    assert "`profharness calibrate`" in ceilings_text(without)


def test_rows_of_several_files_tell_the_least_and_the_most_of_one() -> None:
    rows = tuple(
        FilesRow(**msgspec.structs.asdict(row), low_ns=low, high_ns=2_000, files=3)
        for row, low in zip(USE.operators[:2], (1_000, 2_000), strict=True)
    )
    several = FilesUse(**{**msgspec.structs.asdict(USE), "operators": rows}, files=3)
    table = operator_table(several)
    assert table is not None
    titles = [column.title for column in table.columns]
    assert titles[titles.index("device time") + 1] == "per file"
    per_file = [row[titles.index("per file")] for row in table.rows]
    assert [cell.text for cell in per_file] == ["1.00 µs to 2.00 µs", "2.00 µs"]
    assert [row["device_ns"] for row in as_objects(table)] == [row.device_ns for row in rows]
    alone = operator_table(msgspec.structs.replace(several, files=1))
    assert alone is not None
    assert "per file" not in [column.title for column in alone.columns]
    assert files_text(msgspec.structs.replace(several, files=1)) == files_text(USE) == ""


def test_files_that_add_no_work_are_named() -> None:
    unknown = (
        UnknownWork(needs="the shapes", files=1, first="rank3.json"),
        UnknownWork(needs="operators", files=2, first="rank5.json"),
    )
    use = FilesUse(**msgspec.structs.asdict(USE), files=8, unknown=unknown)
    assert files_text(use) == (
        "8 together: calls, times and work are summed over them. "
        "1 of them (rank3.json) adds no work: it needs the shapes. "
        "2 of them (first rank5.json) add no work: they need operators."
    )


def test_counters_say_how_they_were_matched() -> None:
    table = operator_counter_table(USE)
    assert table is not None
    assert [row["matched"] for row in as_objects(table)] == ["in order", "10 in order, 30 by name"]
    row = OperatorCounter(
        operator="a",
        counter="c",
        unit="count",
        dispatches=3,
        recorded=3,
        in_order=0,
        sum=1.0,
        mean=1,
    )
    assert matched_text(row) == "recorded"


def test_inputs_are_the_extents_of_tensors() -> None:
    assert inputs_text("[[8, 64], [], [[1, 2]], [64, 3]]") == "8×64, 64×3"
    assert inputs_text("[[8, 64], [64, 3]]", 1) == "8×64"
    assert inputs_text("no json") == ""
    assert inputs_text("") == ""


def test_labels_name_inputs_only_where_names_repeat() -> None:
    one = UseRow(name="aten::mm", calls=1, device_ns=1, share=0.1, shapes="[[2, 3], [3, 4]]")
    other = msgspec.structs.replace(one, shapes="[[5, 3], [3, 4]]")
    add = msgspec.structs.replace(one, name="aten::add")
    kernel = msgspec.structs.replace(one, name="void at::native::f<int>(char*)", shapes="")
    assert labels([one, other, add, kernel]) == (
        "mm 2×3",
        "mm 5×3",
        "add",
        "void at::native::f<int>(char*)",
    )


def labelled(name: str, shapes: str, dtypes: str = "") -> UseRow:
    return UseRow(name=name, calls=1, device_ns=1, share=0.1, shapes=shapes, dtypes=dtypes)


def test_labels_take_as_many_inputs_as_tell_rows_apart() -> None:
    wide, narrow, last = "[[8, 3], [3, 4]]", "[[8, 3], [3, 5]]", "[[4], [6, 3], [3, 4]]"
    rows = [
        labelled(f"aten::{name}", shapes)
        for name, shapes in (("mm", wide), ("mm", narrow), ("addmm", last), ("addmm", wide))
    ]
    assert labels(rows) == ("mm 8×3, 3×4", "mm 8×3, 3×5", "addmm 6×3", "addmm 8×3")


def test_labels_of_rows_that_differ_in_type_alone_name_it() -> None:
    one = labelled("aten::mm", "[[2, 3], [3, 4]]", '["c10::BFloat16", "c10::BFloat16"]')
    whole = msgspec.structs.replace(one, dtypes='["float", "float"]')
    mixed = msgspec.structs.replace(one, dtypes='["c10::BFloat16", "float"]')
    larger = msgspec.structs.replace(one, shapes="[[8, 3], [3, 4]]")
    assert labels([one, whole, mixed, larger]) == (
        "mm 2×3, 3×4 bf16",
        "mm 2×3, 3×4 fp32",
        "mm 2×3, 3×4 bf16/fp32",
        "mm 8×3",
    )


def test_no_two_rows_have_one_label() -> None:
    one = labelled("aten::addmm", "[[4], [2, 3], [3, 4]]", '["float", "float", "float"]')
    other_bias = msgspec.structs.replace(one, shapes="[[2, 4], [2, 3], [3, 4]]")
    vector = msgspec.structs.replace(one, shapes="[[1], [2, 3], [3, 4]]")
    own = msgspec.structs.replace(one, name="mylib::addmm")
    assert labels([one, own, other_bias, vector]) == (
        "aten::addmm 2×3, 3×4 fp32",
        "mylib::addmm 2×3, 3×4 fp32",
        "addmm 2×4",
        "aten::addmm 2×3, 3×4 fp32~2",
    )
    assert labels([]) == ()
