"""py-spy's profile for speedscope: generated ones with their truth, a real one, and others."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.cli import run_cli
from profharness.errors import InputError
from profharness.readers.py_spy import speedscope
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace
from profharness.trace.parts.sampled import RATE
from profharness.trace.wanted import Wanted

FRAMES = [("<module>", "/home/user/train.py", 31), ("load", "/home/user/load.py", 7), ("f", "", 0)]
PY_SPY = shutil.which("py-spy", path=str(Path(sys.executable).parent))


def thread(name: str, samples: list[list[int]], weights: Any = 0.01, **keys: Any) -> dict[str, Any]:
    each = weights if isinstance(weights, list) else [weights] * len(samples)
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0.0,
        "endValue": 1.0,
        "samples": samples,
        "weights": each,
        **keys,
    }


def profile(path: Path, *threads: dict[str, Any], exporter: str | None = "py-spy@0.4.1") -> Path:
    frames = [{"name": n, "file": file, "line": line, "col": None} for n, file, line in FRAMES]
    path.write_text(
        json.dumps(
            {
                "$schema": "https://www.speedscope.app/file-format-schema.json",
                "profiles": threads,
                "shared": {"frames": frames},
                "activeProfileIndex": None,
                "exporter": exporter,
                "name": "py-spy profile",
            }
        )
    )
    return path


def marks(trace: Trace) -> list[tuple[str, int, int, int, int]]:
    names = trace.strings.decode(trace.marks.name)
    columns = (getattr(trace.marks, name) for name in ("start_ns", "dur_ns", "pid", "tid"))
    return list(zip(names, *(column.tolist() for column in columns), strict=True))


def test_samples_of_each_thread_are_frames_that_follow_one_another(tmp_path: Path) -> None:
    path = profile(
        tmp_path / "a.json",
        thread('Thread 12 "main"', [[0], [0, 1], [0, 1], [], [0]], [0.02, 0.01, 0.01, 0.01, 0.01]),
        thread('Process 9 Thread 0x1F ""', [[1]]),
    )
    trace = readers.read(path)
    ms = 1_000_000
    assert sorted(marks(trace)) == [
        ("load.py(7): load", 0, 10 * ms, 9, 31),
        ("load.py(7): load", 20 * ms, 20 * ms, NULL, 12),
        ("train.py(31): <module>", 0, 40 * ms, NULL, 12),
        ("train.py(31): <module>", 50 * ms, 10 * ms, NULL, 12),
    ]
    (source,) = trace.sources
    assert (source.format, source.clock) == ("py-spy", ClockDomain.UNKNOWN)
    assert [one.name for one in source.names if one.tid == 12] == ["main"]
    assert [problem.severity for problem in trace.problems] == ["info"]
    assert not len(readers.read(path, wanted=Wanted.DEVICES).marks)


def test_lines_have_the_shares_of_their_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = profile(tmp_path / "a.json", thread("Thread 1", [[0, 1]] * 30 + [[0]] * 10))
    assert run_cli(["hotspots", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("by line, 40 samples of 1 thread at 100 Hz")
    assert [line.split()[-2:] for line in out.splitlines()[2:4]] == [
        ["load.py:7", "load"],
        ["train.py:31", "<module>"],
    ]
    assert run_cli(["hotspots", str(path), "--json"]) == 0
    assert [row["samples"] for row in json.loads(capsys.readouterr().out)["rows"]] == [30, 10]


def test_samples_that_cannot_be_are_left_out_and_counted(tmp_path: Path) -> None:
    path = profile(
        tmp_path / "a.json",
        thread("Thread 1", [[0], [7], [0], [-1], [0]], [0.01, 0.01, -1.0, 0.01]),
        thread("Thread 2", [[0]], unit="none"),
        thread("Thread 3", [], type="evented"),
    )
    trace = readers.read(path)
    assert [(name, ns) for name, _, ns, _, _ in marks(trace)] == [
        ("train.py(31): <module>", 10_000_000)
    ]
    assert [problem.count for problem in trace.problems] == [6, 1]


def test_odd_numbers_of_samples_and_threads_cost_no_more_than_themselves(tmp_path: Path) -> None:
    path = profile(
        tmp_path / "a.json",
        thread("Thread 0012", [[0]] * 5, [5e-324, 5e-324, 0.02, 0.01, 0.01]),
    )
    trace = readers.read(path)
    assert [(ns, tid) for _, _, ns, _, tid in marks(trace)] == [(40_000_000, 12)]
    assert dict(trace.sources[0].details)[RATE] == "100"
    assert [problem.count for problem in trace.problems] == [2, 1]
    endless = profile(tmp_path / "b.json", thread("Thread 1", [[0]] * 20_000, 9e5))
    assert readers.read(endless).problems[0].count == 10_000


@pytest.mark.parametrize(
    ("exporter", "said"),
    [
        ("speedscope@1.5.3", "is a speedscope profile of speedscope@1.5.3, and only py-spy's are"),
        (None, "is a speedscope profile that does not say which program wrote it"),
    ],
)
def test_profiles_of_other_programs_are_named(
    tmp_path: Path, exporter: str | None, said: str
) -> None:
    path = profile(tmp_path / "a.json", thread("Thread 1", [[0]]), exporter=exporter)
    with pytest.raises(InputError, match=said):
        readers.read(path)


def test_a_cut_an_empty_and_an_endless_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = profile(tmp_path / "a.json", thread("Thread 1", [[0]] * 50))
    whole = path.read_text()
    path.write_text(whole[:400])
    with pytest.raises(InputError, match="cut or damaged"):
        readers.read(path)
    with pytest.raises(InputError, match="holds no sample"):
        readers.read(profile(path))
    path.write_text(whole)
    monkeypatch.setattr(speedscope, "_MOST_BYTES", 100)
    with pytest.raises(InputError, match="more than 0 MiB"):
        readers.read(path)


@pytest.mark.skipif(PY_SPY is None, reason="needs py-spy")
@pytest.mark.slow
def test_a_profile_that_py_spy_writes(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text("def hot():\n    for _ in range(20_000_000): pass\n\nhot()\n")
    line = [str(PY_SPY), "record", "-f", "speedscope", "-o", str(tmp_path / "a.json"), "-r", "50"]
    done = subprocess.run([*line, "--", sys.executable, str(script)], check=False)
    if done.returncode:
        pytest.skip("py-spy may not look into a process here")
    assert "work.py(2): hot" in {name for name, *_ in marks(readers.read(tmp_path / "a.json"))}
