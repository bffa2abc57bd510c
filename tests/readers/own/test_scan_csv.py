import gzip

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.readers.own.scan_csv import heads_scan, read_scan_csv


def written(folder, text, name="scan.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_published_table(shared):
    table = read_scan_csv(shared / "fixtures/studies/particlenet_torch_published.csv")
    assert table.axis == "batch_size"
    assert table.key_columns == ("model", "backend", "via", "device")
    assert len(table) == 120
    assert len(table.groups()) == 12
    assert table.level[0] == 4
    assert table.throughput[0] == 2617.4568511651355
    assert table.latency_sem_ms[0] == 16.702640218658853


def test_text_splits_and_numbers_are_ignored(tmp_path):
    table = read_scan_csv(
        written(tmp_path, "gpu,run,batch_size,throughput,note\nA,1,1,10,\nA,2,2,20,\nB,3,1,5,hot\n")
    )
    assert table.key_columns == ("gpu", "note")
    assert table.keys == (("A", ""), ("A", ""), ("B", "hot"))
    assert np.isnan(table.throughput_sem).all()
    assert list(table.groups().values()) == [[0, 1], [2]]


@pytest.mark.parametrize(("header", "end"), [("", ","), (",", ",")])
def test_a_comma_may_end_each_row(tmp_path, header, end):
    text = f"batch_size,throughput{header}\n1,10{end}\n2,20{end}\n"
    assert read_scan_csv(written(tmp_path, text)).throughput.tolist() == [10, 20]


PARTS = "Client Send,Network+Server Send/Recv,Server Queue,Server Compute Infer,Client Recv"


def test_a_report_of_perf_analyzer_is_a_scan(tmp_path):
    head = f"Concurrency,Inferences/Second,{PARTS},p50 latency,Avg GPU Utilization\n"
    rows = ["2,190.5,1,2,3,4,5,20,GPU-1:0.5;", "1,100,1,2,3,4,5,20,GPU-1:0.25;"]
    path = written(tmp_path, head + "\n".join(rows) + "\n")
    table = read_scan_csv(path)
    assert heads_scan(path)
    assert (table.axis, table.unit, table.key_columns) == ("concurrency", "items/s", ())
    assert [table.level.tolist(), table.throughput.tolist()] == [[1, 2], [100, 190.5]]
    assert table.keys == ((), ())


def test_a_report_of_request_rates_is_no_scan(tmp_path):
    path = written(tmp_path, f"Request Rate,Inferences/Second,{PARTS}\n1,1,1,1,1,1,1\n")
    assert not heads_scan(path)
    with pytest.raises(InputError, match="no column 'throughput'"):
        read_scan_csv(path)


def test_impossible_levels_of_a_report_are_named(tmp_path):
    path = written(tmp_path, f"Concurrency,Inferences/Second,{PARTS}\n1,0,1,1,1,1,1\n")
    with pytest.raises(InputError, match="is not positive"):
        read_scan_csv(path)


def test_plans_of_other_cores_are_other_series(tmp_path):
    head = "processes,cores_per_process,throughput\n"
    table = read_scan_csv(written(tmp_path, head + "1,2,10\n1,1,5\n2,1,9\n"))
    assert table.key_columns == ("cores_per_process",)
    assert table.keys == (("2",), ("1",), ("1",))
    same = read_scan_csv(written(tmp_path, head + "1,2,10\n2,2,19\n", "same.csv"))
    assert same.key_columns == ()


@pytest.mark.parametrize("axis", ["batch_size", "concurrency", "processes"])
def test_axes(tmp_path, axis):
    table = read_scan_csv(
        written(tmp_path, f"{axis},throughput,latency_ms,throughput_sem\n1,10,2,0\n2,20,,0.5\n")
    )
    assert table.axis == axis
    assert table.keys == ((), ())
    assert table.latency_ms[0] == 2
    assert np.isnan(table.latency_ms[1])
    assert table.throughput_sem.tolist() == [0, 0.5]


def test_the_level_that_varies_is_the_axis(tmp_path):
    table = read_scan_csv(written(tmp_path, "batch_size,concurrency,throughput\n8,1,10\n8,2,20\n"))
    assert (table.axis, table.key_columns) == ("concurrency", ())
    both = read_scan_csv(
        written(tmp_path, "batch_size,concurrency,throughput\n8,1,10\n8,2,20\n16,1,5\n")
    )
    assert (both.axis, both.key_columns) == ("batch_size", ("concurrency",))
    assert both.keys == (("1",), ("2",), ("1",))


@pytest.mark.parametrize(
    "form", ["batch_size;throughput\n4;10,5\n", "batch_size\tthroughput\n4\t10\n"]
)
def test_other_delimiters(tmp_path, form):
    if "," in form:
        with pytest.raises(InputError, match=r"line 2.*'10,5'"):
            read_scan_csv(written(tmp_path, form))
    else:
        assert read_scan_csv(written(tmp_path, form)).throughput.tolist() == [10]


def test_gzip_bom_blank_lines_and_crlf(tmp_path):
    text = "﻿batch_size,throughput\r\n\r\n4,10\r\n , \r\n8,18\r\n".encode()
    assert read_scan_csv(written(tmp_path, gzip.compress(text), "scan.csv.gz")).level.tolist() == [
        4,
        8,
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("batch_size,throughput\n", "no rows"),
        (" , ,\n", "empty table"),
        ("batch,throughput\n1,2\n", "no column 'batch_size', 'concurrency' or 'processes'"),
        ("batch_size,rate\n1,2\n", "no column 'throughput'"),
        ("batch_size,throughput\n1,2\n2,fast\n", r"line 3: throughput is 'fast'"),
        ("batch_size,throughput\n1,2\nx,3\n", r"line 3: batch_size is 'x'"),
        ("batch_size,throughput\n1,\n", r"line 2: throughput is ''"),
        ("batch_size,throughput\n1,2,3\n", "line 2 has 3 cells"),
        ("batch_size,throughput\n1\n", "line 2 has 1 cells"),
        ("batch_size,throughput\n1,-2\n", "line 2: throughput is -2"),
        ("batch_size,throughput\n0,2\n", "line 2: batch_size is 0"),
        ("batch_size,throughput\n1,inf\n", "line 2: throughput is inf"),
        ("batch_size,throughput,latency_ms\n1,2,0\n", "line 2: latency_ms is 0"),
        ("batch_size,throughput,throughput_sem\n1,2,-1\n", "line 2: throughput_sem is -1"),
        ("batch_size,throughput,throughput\n1,2,3\n", "stands twice"),
        (b"\x00\x01\x02batch_size", "not a text"),
        (b"\xff\x00", "not a text"),
        ("\ufeffbatch_size".encode("utf-16-le"), "is text in UTF-16, as a Windows shell saves"),
        (gzip.compress(b"batch_size,throughput\n1,2\n", mtime=0)[:-12], "gzip"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        read_scan_csv(written(tmp_path, text))
    assert "scan.csv" in caught.value.message
    assert caught.value.hint


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_scan_csv(tmp_path / "none.csv")


@settings(deadline=None)
@given(st.binary(max_size=200))
@example(b",")
@example(b"\r")
@example(b"a\rb,throughput")
@example(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x07\xff")
@example(b'batch_size,throughput\n1,"')
def test_any_bytes_give_a_table_or_an_input_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "x.csv"
    path.write_bytes(data)
    try:
        read_scan_csv(path)
    except InputError:
        pass


def test_a_long_series_is_read(tmp_path):
    rows = "".join(f"{level},{level}\n" for level in range(1, 2_001))
    assert len(read_scan_csv(written(tmp_path, "batch_size,throughput\n" + rows)).level) == 2_000


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_more_than_a_scan_can_have_is_refused(tmp_path, pack):
    path = tmp_path / "scan.csv"
    path.write_bytes(pack(b"batch_size,throughput\n" + b"1,2\n" * (1 << 22)))
    with pytest.raises(InputError, match="more than 8 MiB"):
        read_scan_csv(path)


@pytest.mark.parametrize(
    ("rows", "name", "words"),
    [
        (2_001, "a", "more than 2000 rows"),
        (41, "{0}th", "41 series, more than the 40 of one table"),
        (501, "{1}th", "501 rows in 9 series, more than the 500 of one table"),
    ],
)
def test_more_rows_or_series_than_can_be_fitted_are_refused(tmp_path, rows, name, words):
    lines = (f"{at},{at},{name.format(at, at % 9)}\n" for at in range(1, rows + 1))
    path = written(tmp_path, "batch_size,throughput,provider\n" + "".join(lines))
    with pytest.raises(InputError, match=words):
        read_scan_csv(path)


@pytest.mark.parametrize("number", ["1e31", "1e300", "1e-31", "1e-320"])
def test_numbers_that_nothing_measures_are_refused(tmp_path, number):
    path = written(tmp_path, f"batch_size,throughput\n1,2\n2,{number}\n")
    with pytest.raises(InputError, match=f"line 3: throughput is {number}, which nothing measures"):
        read_scan_csv(path)


def test_many_short_series_are_read(tmp_path):
    rows = "".join(f"{at},{at},{at % 40}th\n" for at in range(1, 241))
    table = read_scan_csv(written(tmp_path, "batch_size,throughput,provider\n" + rows))
    assert len(table.groups()) == 40
