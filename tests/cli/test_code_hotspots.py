"""`hotspots --by line` and `--by instruction`, as a user calls them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from profharness.cli import run_cli
from profharness.findings import finding
from profharness.rundir.manifest import Artifact, Manifest, PassRecord
from profharness.rundir.paths import RunDir
from tests.fakes.code_files import (
    Code,
    Sample,
    write_samples,
    write_samples_json,
    write_thread_trace,
)
from tests.fakes.rocprofv3_files import write_csv
from tests.fakes.rocprofv3_program import program

GIVEN = program(1, 3)
CODE = Code(
    (("s_waitcnt vmcnt(0)", "/src/gemm.cpp:20"), ("v_add_f32 v1, v2", "")),
    (
        *(Sample(1, 0, (1 << 64) - 1, "WAITCNT") for _ in range(6)),
        *(Sample(1, 0, 0xFF, "") for _ in range(2)),
        Sample(2, 1, 1, "BARRIER_WAIT"),
        Sample(2, -1, 1, ""),
    ),
)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    write_csv(tmp_path, GIVEN, "7.0")
    return write_samples(tmp_path / "4711_pc_sampling_stochastic.csv", CODE)


def answer(
    capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0
) -> tuple[str, str]:
    assert run_cli(["hotspots", *map(str, words)]) == code
    said = capsys.readouterr()
    return said.out, said.err


def test_the_hottest_line_comes_first_with_its_error_and_reason(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = answer(capsys, samples, "--by", "line")
    heading, _, first, *_ = out.splitlines()
    assert heading == "by line, 10 samples of the program counter (stochastic)"
    assert first.split()[:5] == ["80", "%", "±", "23", "8"]
    assert "75 %  waitcnt 75 %" in first
    assert "/src/gemm.cpp:20" in first
    assert "10.0 % has no source line: that code was built without -g" in out
    assert "10.0 % in code that rocprofv3 could not decode" in out
    assert err == ""
    assert answer(capsys, samples)[0] == out  # such files hold nothing else


def test_json_and_csv_hold_the_same_figures(
    samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = json.loads(answer(capsys, samples, "--by", "instruction", "--json")[0])
    rows = list(
        csv.DictReader(
            io.StringIO(answer(capsys, samples, "--by", "instruction", "--format", "csv")[0])
        )
    )
    assert (table["by"], table["method"], table["samples"]) == ("instruction", "stochastic", 10)
    first = table["rows"][0]
    assert (first["samples"], first["share"], first["lanes"]) == (8, 0.8, (6 * 64 + 2 * 8) / 8)
    assert (first["issued"], first["stalled"]) == (2, 6)
    assert first["stall_reasons"] == [{"reason": "waitcnt", "samples": 6, "share": 0.75}]
    assert [int(row["samples"]) for row in rows] == [row["samples"] for row in table["rows"]]
    assert rows[0]["stall_reasons"] == "waitcnt:6"
    cut = json.loads(answer(capsys, samples, "--by", "instruction", "--json", "--top", "1")[0])
    assert (cut["samples"], cut["rows"]) == (10, [first])


def test_a_json_file_says_the_same(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_samples_json(tmp_path / "4711_results.json", GIVEN, CODE, "stochastic")
    assert answer(capsys, path, "--by", "line") == answer(capsys, samples, "--by", "line")
    both = answer(capsys, path, samples, "--by", "line")
    assert both == answer(capsys, samples, "--by", "line")  # one process counts once


def test_a_thread_trace_shows_cycles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_thread_trace(
        tmp_path / "stats_ui_output_agent_2_dispatch_1.csv",
        [
            (7, 1, "; relu.kd", 0, 0, 0, 0, "relu(float*)"),
            (7, 1, "v_nop", 10, 400, 100, 50, "a.cpp:1"),
            (7, 2, "s_endpgm", 10, 1600, 0, 0, ""),
        ],
    )
    out, _ = answer(capsys, path, "--by", "instruction")
    lines = [line.split() for line in out.replace("\u2009", "").splitlines()]
    assert lines[0][:4] == ["by", "instruction,", "2000", "cycles"]
    assert lines[2][:7] == ["80.0", "%", "1600", "0", "0", "10", "160.0"]
    assert lines[3][:7] == ["20.0", "%", "400", "100", "50", "10", "40.0"]
    assert out.count("relu(float*)") == 2


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a pass of samples, whose files are kept aside, and one of a thread trace."""
    made = RunDir.create(tmp_path / "run")
    folder = made.artifacts_dir("rocprofv3", "n0", "0") / "pc"
    folder.mkdir(parents=True)
    kernels = write_csv(folder, GIVEN, "7.0")
    samples = write_samples(folder / "4711_pc_sampling_stochastic.csv", CODE)
    traced = write_thread_trace(
        folder / "stats_ui_output_agent_2_dispatch_1.csv", [(7, 1, "v_nop", 1, 5, 0, 0, "b.cpp:9")]
    )
    artifacts = [
        Artifact(
            path=made.relative(path),
            layer="rocprofv3",
            format="rocprofv3-csv",
            pass_name="att" if path == traced else "pc",
            aside=True,
        )
        for path in (*kernels, samples, traced)
    ]
    made.write_manifest(
        Manifest(
            id="r",
            created="2026-01-02T03:04:05Z",
            profharness="0",
            kind="command",
            argv=("profharness", "run"),
            artifacts=tuple(artifacts),
            passes=(PassRecord(name="bare"), PassRecord(name="pc"), PassRecord(name="att")),
        )
    )
    return made.root


def test_of_a_run_the_first_pass_with_samples_counts_or_the_one_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = json.loads(answer(capsys, run, "--by", "line", "--json")[0])
    assert (table["pass"], table["method"], table["samples"]) == ("pc", "stochastic", 10)
    kernels = {symbol.number: symbol.name for symbol in GIVEN.symbols}
    assert table["rows"][0]["kernel"] == kernels[GIVEN.kernels[0].symbol]
    table = json.loads(answer(capsys, run, "--by", "line", "--json", "--pass", "att")[0])
    assert (table["method"], table["latency_cycles"]) == ("thread_trace", 5)
    out, err = answer(capsys, run, "--by", "line", "--pass", "bare")
    assert "nothing recorded" in out
    assert "record samples of the program counter" in err


def test_a_run_that_took_no_sample_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = RunDir.create(tmp_path / "none")
    missed = finding("nothing-by-line", "rocprofv3 took no sample of a program counter")
    manifest = Manifest(
        id="r", created="", profharness="0", kind="command", argv=(), findings=(missed,)
    )
    made.write_manifest(manifest)
    _, err = answer(capsys, made.root, "--by", "line")
    assert "nothing to list by line; rocprofv3 took no sample" in err
    assert "record samples" not in err


def test_wrong_lines_end_with_a_sentence_and_a_code(
    run: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = answer(capsys, run, "--by", "line", "--pass", "none", code=2)
    assert "no such pass" in err
    assert "bare, pc, att" in err
    _, err = answer(capsys, samples, "--by", "line", "--samples", "power", code=2)
    assert "--samples is not for rows by line" in err
    stats = write_thread_trace(samples.with_name("stats_a.csv"), [(7, 1, "v_nop", 1, 5, 0, 0, "")])
    _, err = answer(capsys, samples, stats, "--by", "line", code=2)
    assert "stochastic and thread_trace" in err


def test_other_files_say_what_to_record(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = samples.with_name("4711_kernel_trace.csv")
    out, err = answer(capsys, kernels, "--by", "line")
    assert "--profile rocprofv3 --pc-sampling" in err
    assert "nothing recorded" in out
    _, err = answer(capsys, samples, "--by", "kernel")
    assert "its code is listed by --by line" in err
