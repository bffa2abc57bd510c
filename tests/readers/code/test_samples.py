"""Samples of the program counter, counted against independent sums."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.code.spots import code_hotspots
from profharness.errors import InputError
from profharness.readers.code import sample_csv, sample_json
from profharness.report.tables.code_spots import code_text
from profharness.trace.code_records import CodeFile
from tests.fakes.code_files import (
    HOST_TRAP,
    STOCHASTIC,
    Code,
    Sample,
    write_samples,
    write_samples_json,
)
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import write_csv
from tests.fakes.rocprofv3_program import program

INSTRUCTIONS = (
    ("s_waitcnt vmcnt(0)", "/src/a b.cpp:20"),
    ("v_add_f32 v1, v2, v3", ""),
    ("v_add_f32 v1, v2, v3", "/src/a b.cpp:21"),
    ('ds_read_b128 "x"', "/src/inner.hpp:7 -> /src/a b.cpp:20"),
)
GIVEN = program(1, 6)
NAMES = {symbol.number: symbol.name for symbol in GIVEN.symbols}
KERNEL = {kernel.dispatch: NAMES[kernel.symbol] for kernel in GIVEN.kernels}
SAMPLES = st.builds(
    Sample,
    st.integers(1, 6),
    st.integers(-1, len(INSTRUCTIONS) - 1),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from(("", "WAITCNT", "BARRIER_WAIT", "ARBITER_NOT_WIN")),
)


def codes(count: int, seed: int = 1) -> Code:
    rng = random.Random(seed)
    return Code(
        INSTRUCTIONS,
        tuple(
            Sample(
                rng.randrange(1, 7),
                rng.randrange(-1, len(INSTRUCTIONS)),
                rng.getrandbits(64),
                rng.choice(("", "", "WAITCNT", "SLEEP_WAIT")),
            )
            for _ in range(count)
        ),
    )


Sums = dict[tuple[str, str, str], tuple[object, ...]]


def wanted(code: Code, *, stochastic: bool) -> Sums:
    """Samples, lanes, issued and stalls of each place, sample by sample."""
    samples: Counter[tuple[str, str, str]] = Counter()
    lanes: Counter[tuple[str, str, str]] = Counter()
    issued: Counter[tuple[str, str, str]] = Counter()
    stalls: dict[tuple[str, str, str], Counter[str]] = {}
    for sample in code.samples:
        instruction, comment = code.at(sample)
        place = (KERNEL[sample.dispatch], instruction, comment if instruction else "")
        samples[place] += 1
        lanes[place] += f"{sample.mask:b}".count("1")
        issued[place] += not sample.reason
        if sample.reason:
            stalls.setdefault(place, Counter())[sample.reason.lower()] += 1
    return {
        place: (
            count,
            lanes[place],
            count,
            issued[place] if stochastic else None,
            dict(stalls.get(place, {})) if stochastic else {},
        )
        for place, count in samples.items()
    }


def found(file: CodeFile) -> Sums:
    return {
        (record.kernel, record.instruction, record.source): (
            record.samples,
            record.lanes,
            record.masked,
            record.issued,
            dict(record.stalls),
        )
        for record in file.records
    }


@settings(max_examples=20, deadline=None)
@given(st.lists(SAMPLES, min_size=1, max_size=40), st.booleans())
def test_csv_and_json_count_what_was_sampled(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Sample], stochastic: bool
) -> None:
    folder = tmp_path_factory.mktemp("samples")
    code = Code(INSTRUCTIONS, tuple(samples))
    write_csv(folder / "traced", GIVEN, "7.0")
    method = "stochastic" if stochastic else "host_trap"
    from_csv = sample_csv.read(
        write_samples(
            folder / "traced" / f"4711_pc_sampling_{method}.csv",
            code,
            STOCHASTIC if stochastic else HOST_TRAP,
        )
    )
    (from_json,) = sample_json.read(
        write_samples_json(folder / "4711_results.json", GIVEN, code, method)
    )
    assert found(from_csv) == found(from_json) == wanted(code, stochastic=stochastic)
    assert from_csv.method == from_json.method == method
    assert from_csv.problems == from_json.problems == ()


def test_kernels_are_named_by_any_file_of_the_process(tmp_path: Path) -> None:
    code = codes(50)
    for name, other in (
        ("database", lambda folder: write_rocpd(folder / "4711_results.db", GIVEN)),
        ("older", lambda folder: write_csv(folder, GIVEN, "6.2")),
    ):
        folder = tmp_path / name
        folder.mkdir()
        other(folder)
        file = sample_csv.read(write_samples(folder / "4711_pc_sampling_stochastic.csv", code))
        assert found(file) == wanted(code, stochastic=True), name
        assert file.problems == ()


def test_samples_of_kernels_that_nothing_names_are_said(tmp_path: Path) -> None:
    code = codes(30)
    file = sample_csv.read(write_samples(tmp_path / "4711_pc_sampling_stochastic.csv", code))
    assert {record.kernel for record in file.records} == {""}
    (problem,) = file.problems
    assert (problem.severity, problem.count) == ("warning", 30)
    assert "no kernel trace of the same process" in problem.message


def test_order_and_case_of_columns_do_not_matter_nor_does_gzip(tmp_path: Path) -> None:
    code = codes(40)
    plain = write_samples(tmp_path / "9_pc_sampling_stochastic.csv", code)
    turned = write_samples(
        tmp_path / "8_pc_sampling_stochastic.csv",
        code,
        [name.upper() for name in reversed(STOCHASTIC)],
        quoted=False,
    )
    packed = tmp_path / "7_pc_sampling_stochastic.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert found(sample_csv.read(plain)) == found(sample_csv.read(turned))
    assert found(sample_csv.read(plain)) == found(sample_csv.read(packed))


@pytest.mark.parametrize(
    ("left", "named"),
    [
        (("Instruction_Comment", "Exec_Mask"), "Exec_Mask, Instruction_Comment"),
        (("Dispatch_Id", "Correlation_Id"), "Dispatch_Id"),
    ],
)
def test_a_missing_column_is_named(tmp_path: Path, left: tuple[str, ...], named: str) -> None:
    columns = [name for name in STOCHASTIC if name not in left]
    path = write_samples(tmp_path / "1_pc_sampling_stochastic.csv", codes(3), columns)
    with pytest.raises(InputError, match=f"has no column {named}: its columns are"):
        sample_csv.read(path)


def test_stochastic_samples_that_do_not_tell_issue_are_still_stochastic(tmp_path: Path) -> None:
    columns = [name for name in STOCHASTIC if name != "Wave_Issued_Instruction"]
    file = sample_csv.read(
        write_samples(tmp_path / "1_pc_sampling_stochastic.csv", codes(9), columns)
    )
    assert file.method == "stochastic"
    table = code_hotspots([file], "line")
    assert {(row.issued, row.stalled, row.stall_reasons) for row in table.rows} == {
        (None, None, ())
    }
    text = code_text(table, 1, None)
    assert "(stochastic)" in text
    heads, row = (line.split() for line in text.splitlines()[1:3])
    assert (heads[3], row[6]) == ("stalled", "-")


def test_a_mask_that_is_none_counts_no_lanes(tmp_path: Path) -> None:
    path = tmp_path / "1_pc_sampling_host_trap.csv"
    path.write_text(f"{','.join(HOST_TRAP)}\n1,,1,v_nop,a.c:1,1\n2,0xff,1,v_nop,a.c:1,1\n")
    (record,) = sample_csv.read(path).records
    assert (record.samples, record.masked, record.lanes) == (2, 1, 8)


def test_a_json_file_without_samples_has_none_and_a_cut_one_says_so(tmp_path: Path) -> None:
    code = codes(40)
    path = write_samples_json(tmp_path / "4711_results.json", GIVEN, code, "host_trap")
    whole = path.read_text()
    empty = write_samples_json(tmp_path / "1_results.json", GIVEN, Code((), ()), "host_trap")
    assert sample_json.read(empty) == ()
    at = whole.index("inst_index", whole.index('"pc_sample_host_trap"') + 4000)
    path.write_text(whole[:at])
    (file,) = sample_json.read(path)
    assert [problem.severity for problem in file.problems] == ["error"]
    assert 0 < sum(record.samples for record in file.records) < 40
    path.write_text(whole[:200])
    with pytest.raises(InputError, match="cut or damaged"):
        sample_json.read(path)


def test_a_json_file_that_is_cut_before_its_first_sample_is_not_called_empty(
    tmp_path: Path,
) -> None:
    path = write_samples_json(tmp_path / "4711_results.json", GIVEN, codes(3), "stochastic")
    whole = path.read_text()
    assert '"pc_sample_host_trap": []' in whole  # lists of kinds that were not recorded are empty
    path.write_text(whole[: whole.index('"pc_sample_stochastic"') + 40])
    with pytest.raises(InputError, match="cut or damaged"):
        sample_json.read(path)


def test_samples_in_json_that_are_not_as_expected_are_counted(tmp_path: Path) -> None:
    path = write_samples_json(tmp_path / "4711_results.json", GIVEN, codes(3), "host_trap")
    whole = path.read_text()
    path.write_text(whole.replace('"inst_index": ', '"inst_index": true, "was": ', 1))
    (file,) = sample_json.read(path)
    assert sum(record.samples for record in file.records) == 2
    (problem,) = file.problems
    assert (problem.severity, problem.count) == ("warning", 1)
    assert "samples are not readable" in problem.message
    path.write_text(whole.replace('"inst_index": ', '"inst_index": true, "was": '))
    with pytest.raises(InputError, match="holds no readable sample: 3 are not as expected"):
        sample_json.read(path)
