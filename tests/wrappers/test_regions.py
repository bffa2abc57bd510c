"""`--capture steps=A:B` inside the process: when the tracer is told to record, with a stand-in
library that writes it down.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.variants import thorough

from .running import Ran, Runner

STAND_IN = """
#include <stdint.h>
#include <stdio.h>
static uint64_t next = 0;
static void say(const char *what) { printf("%s\\n", what); fflush(stdout); }
uint64_t roctxRangeStartA(const char *name) { say(name); return ++next; }
void roctxRangeStop(uint64_t id) { (void)id; }
int roctxProfilerPause(uint64_t thread) { say(thread ? "pause one" : "pause"); return 0; }
int roctxProfilerResume(uint64_t thread) { say(thread ? "resume one" : "resume"); return 0; }
"""
PROGRAM = """
import profharness_mark
for _ in range(4):
    profharness_mark.step()
"""


def traced(runner: Runner, program: str, library: Path, *, steps: str = "1:3") -> Ran:
    """Run it as rocprofv3 with its selected-regions option would."""
    return runner.run(
        runner.script(program),
        PROFHARNESS_REGIONS=steps,
        ROCPROF_SELECTED_REGIONS="1",
        LD_LIBRARY_PATH=str(library),
        ROCM_PATH=str(library),
    )


NAMES = ("librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0")


@pytest.fixture(scope="module", params=NAMES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler for the stand-in library")
    folder = tmp_path_factory.mktemp("roctx")
    (folder / "roctx.c").write_text(STAND_IN)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / request.param, folder / "roctx.c"], check=True
    )
    return folder


def test_recording_lasts_from_the_first_step_to_before_the_last(
    runner: Runner, library: Path
) -> None:
    ran = traced(runner, PROGRAM, library)
    assert ran.err == ""
    assert ran.out.splitlines() == [
        "resume",
        "profharness.step:1",
        "profharness.step:2",
        "pause",
        "profharness.step:3",
        "profharness.step:4",
    ]
    assert ran.hello["region"] == "closed"


def test_from_step_0_on_it_records_from_the_start(runner: Runner, library: Path) -> None:
    ran = traced(runner, "print('program')\n" + PROGRAM, library, steps="0:9")
    assert ran.out.splitlines()[:3] == ["resume", "program", "profharness.step:1"]
    assert ran.hello["region"] == "open"


@pytest.mark.slow
@pytest.mark.parametrize("library", [NAMES[0], *thorough(NAMES[1])], indirect=True)
def test_optimizer_steps_count_too_until_the_script_marks_its_own(
    runner: Runner, library: Path
) -> None:
    pytest.importorskip("torch")
    ran = traced(
        runner,
        """
import profharness_mark, torch
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
def step():
    weight.sum().backward()
    optimizer.step()
step(), step()
print("own")
"""
        + PROGRAM,
        library,
    )
    assert ran.out.splitlines() == [
        "resume",
        "profharness.step:1",
        "profharness.step:2",
        "own",
        "profharness.step:1",
        "profharness.step:2",
        "pause",
        "profharness.step:3",
        "profharness.step:4",
    ]


def test_outside_of_the_tracer_nothing_is_told(runner: Runner, library: Path) -> None:
    ran = runner.run(
        runner.script(PROGRAM), LD_LIBRARY_PATH=str(library), PROFHARNESS_REGIONS="1:3"
    )
    assert "resume" not in ran.out
    assert ran.hello.get("region", "") == ""


def test_without_a_library_the_hello_says_so(runner: Runner, tmp_path: Path) -> None:
    ran = traced(runner, PROGRAM, tmp_path)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert ran.hello["messages"] == [
        "no library with roctxProfilerResume could be loaded: the tracer was never told to record"
    ]
