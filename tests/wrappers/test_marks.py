"""Ranges for the vendors' tracers, with a stand-in library that writes down how it was called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .running import Runner

STAND_IN = """
#include <stdint.h>
#include <stdio.h>
static uint64_t next = 41;
uint64_t roctxRangeStartA(const char *name) { printf("start %s %llu\\n", name, (unsigned long long)++next); fflush(stdout); return next; }
void roctxRangeStop(uint64_t id) { printf("stop %llu\\n", (unsigned long long)id); fflush(stdout); }
int roctxProfilerPause(uint64_t thread) { printf("pause %llu\\n", (unsigned long long)thread); fflush(stdout); return 0; }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for the stand-in library")
    (tmp_path / "roctx.c").write_text(STAND_IN)
    (tmp_path / "lib").mkdir()
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-o",
            tmp_path / "lib" / "libroctx64.so",
            tmp_path / "roctx.c",
        ],
        check=True,
    )
    return tmp_path / "lib"


def test_steps_and_ranges_reach_the_tracer(runner: Runner, library: Path) -> None:
    program = runner.script("""
import profharness_mark
with profharness_mark.range("load"):
    profharness_mark.step()
profharness_mark.step()
from profharness_hooks import marks as profharness_ranges
profharness_ranges.pause_recording(), profharness_ranges.resume_recording()
""")
    ran = runner.run(program, LD_LIBRARY_PATH=str(library))
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "start profharness.range:load 42",
        "start profharness.step:1 43",
        "stop 42",
        "stop 43",
        "start profharness.step:2 44",
        "pause 0",
    ]


def test_without_a_library_nothing_happens(runner: Runner) -> None:
    ran = runner.run(
        "-c",
        "from profharness_hooks import marks as r; print(r.libraries()); r.stop(r.start('x'))",
        ROCM_PATH=str(runner.folder),
    )
    assert (ran.status, ran.out, ran.err) == (0, "[]\n", "")
