"""Why a layer inside a command's processes left nothing: from hello and bye files, and from real
processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from profharness.findings import Finding
from profharness.layers.torch import TorchLayer
from profharness.rundir.manifest import ENDED_BY, Hello
from profharness.rundir.paths import RunDir
from profharness.supervise.hook_reports import Observer
from profharness.supervise.missing_records import (
    EMPTY,
    REPAIR,
    HookReports,
    message_findings,
    nothing_recorded,
)
from tests import started

STOOD = "the script uses torch's profiler itself: ours stood back"

TORCH = TorchLayer.about


def hello(
    pid: int = 7,
    *,
    torch: bool = True,
    window: str = "",
    messages: tuple[str, ...] = (),
    forked: bool = False,
) -> Hello:
    return Hello(
        pid=pid,
        frameworks={"torch": "2.0"} if torch else {},
        window=window,
        messages=messages,
        forked=forked,
    )


@pytest.mark.parametrize(
    ("hellos", "byes", "says"),
    [
        ((), (), "no Python process"),
        (
            (hello(torch=False), hello(8, torch=False)),
            (7, 8),
            "2 Python processes ran, and none imported torch",
        ),
        ((hello(window="open"),), (), "os._exit or a signal while its window was open"),
        ((hello(window="stood back", messages=(STOOD,)),), (7,), "ours stood back"),
        ((hello(),), (7,), "--capture steps=500:510, and the script had 40 steps"),
        ((hello(window="nothing recorded"),), (7,), "held no event"),
        (
            (hello(messages=("recording with torch.profiler failed: OSError: full",)),),
            (7,),
            "OSError: full",
        ),
        ((hello(),), (), "before anything was written"),
    ],
)
def test_each_cause_is_told(hellos: tuple[Hello, ...], byes: tuple[int, ...], says: str) -> None:
    found = nothing_recorded(TORCH, HookReports(hellos, byes, {7: 40}, (), "steps=500:510"))
    assert [(one.id, one.severity) for one in found] == [("nothing-recorded", "error")]
    assert says in found[0].message


def test_processes_of_one_cause_are_one_finding() -> None:
    found = nothing_recorded(
        TORCH, HookReports([hello(pid, window="open") for pid in range(10, 20)], (), {}, ())
    )
    assert len(found) == 1
    assert "10, 11, 12, 13, 14 and 5 more" in found[0].message
    assert found[0].figures == {"processes": 10}


def test_what_was_recorded_is_no_finding_except_for_a_process_that_was_cut_off() -> None:
    assert (
        nothing_recorded(
            TORCH, HookReports([hello(1, window="exported"), hello(2)], (1, 2), {}, (1,))
        )
        == ()
    )
    found = nothing_recorded(
        TORCH, HookReports([hello(1, window="exported"), hello(2, window="open")], (1,), {}, (1,))
    )
    assert [(one.severity, "process 2" in one.message) for one in found] == [("warning", True)]


def test_messages_are_published_once_per_sentence() -> None:
    found = message_findings(
        [
            hello(1, messages=("a note",)),
            hello(2, messages=("a note", "the record of steps failed: OSError: x")),
        ]
    )
    assert [(one.id, one.message) for one in found] == [
        ("hook-message", "a note (processes 1, 2)"),
        ("profiler-failed", "the record of steps failed: OSError: x (process 2)"),
    ]


def test_a_forked_user_of_a_framework_is_advised_to_spawn(tmp_path: Path) -> None:
    (tmp_path / "hello-5.json").write_bytes(
        msgspec.json.encode(Hello(pid=5, forked=True, used=("torch",)))
    )
    (tmp_path / "hello-6.json").write_bytes(msgspec.json.encode(Hello(pid=6, forked=True)))
    found: list[Finding] = []
    Observer(tmp_path).report(found.append)
    assert [(one.id, one.figures) for one in found] == [("fork-not-recorded", {"pid": 5})]
    assert "spawn" in found[0].advice
    assert "PYTHONPATH" not in found[0].advice


def test_forked_processes_are_told_once_of_the_pass_that_was_to_record_them(
    tmp_path: Path,
) -> None:
    """Two children of a bare pass, and the two of the pass under torch."""
    for pid, pass_name in ((5, "bare"), (6, "bare"), (7, "torch"), (8, "torch")):
        layers = ("torch",) if pass_name == "torch" else ()
        child = Hello(pid=pid, forked=True, used=("torch",), layers=layers, pass_name=pass_name)
        (tmp_path / f"hello-{pid}.json").write_bytes(msgspec.json.encode(child))
    found: list[Finding] = []
    for pass_name in ("bare", "torch"):
        Observer(tmp_path, pass_name).report(found.append)
    assert [(one.id, one.message) for one in found] == [
        (
            "fork-not-recorded",
            (
                "processes 7, 8 were forked and used torch, whose profiler does not survive that: "
                "what they computed is in no trace"
            ),
        )
    ]


def test_a_process_that_only_forked_has_lost_nothing() -> None:
    """The finding on its children says what is missing, and what to do."""
    parent = hello(1, window=EMPTY)
    child = Hello(pid=2, parent_pid=1, forked=True, used=("torch",))
    assert nothing_recorded(TORCH, HookReports([parent, child], {1}, {}, ())) == ()
    other = Hello(pid=2, parent_pid=9, forked=True, used=("torch",))
    for children in ([], [other], [Hello(pid=2, parent_pid=1, forked=True)]):
        (found,) = nothing_recorded(TORCH, HookReports([parent, *children], {1}, {}, ()))
        assert "held no event" in found.message


def test_a_program_that_died_is_to_be_repaired_and_not_measured_otherwise() -> None:
    died = f"{ENDED_BY}ModuleNotFoundError: No module named 'x' (train.py:3)"
    reports = HookReports([hello(window=EMPTY, messages=(died,))], {7}, {}, ())
    (found,) = nothing_recorded(TORCH, reports)
    assert (found.advice, found.message) == (
        REPAIR,
        f"torch recorded nothing of process 7: {died}",
    )


def test_processes_without_messages_say_nothing() -> None:
    assert message_findings([hello(1), hello(2, window="exported")]) == ()


def test_a_framework_without_a_hook_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process that has torch's library mapped, and one that helloed and never used it after
    a fork.
    """
    monkeypatch.setattr("profharness.supervise.hook_reports.EVERY_S", 0.0)
    library = tmp_path / "libtorch_cpu.so"
    library.write_bytes(bytes(4096))
    hold = (
        "import mmap, sys\n"
        f"file = open({str(library)!r}, 'rb')\n"
        "held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-S", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        observer = Observer(tmp_path)
        observer.follow(process.pid)
        observer.look()
        process.communicate()
    of_script: list[Finding] = []
    observer._command = ("./train.sh",)
    observer.report(of_script.append)
    assert "in place of what starts it" in of_script[0].advice
    observer._command = ("python", "train.py")
    found: list[Finding] = []
    observer.report(found.append)
    assert [(one.id, one.severity, one.figures) for one in found] == [
        ("hook-not-loaded", "error", {"pid": process.pid})
    ]
    assert "used torch" in found[0].message
    # the same process with its hook's hello: nothing is said, of a fork that used no framework
    # neither
    for one in (hello(process.pid), Hello(pid=6, forked=True)):
        (tmp_path / f"hello-{one.pid}.json").write_bytes(msgspec.json.encode(one))
    found.clear()
    observer.report(found.append)
    assert found == []


SCRIPT = """
import os, sys, torch
how = sys.argv[1]
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def work(steps=8):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
if how == "own":
    with torch.profiler.profile():
        work()
else:
    work()
if how == "exit":
    os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "options", "says"),
    [
        ("own", (), "ours stood back"),
        ("exit", (), "os._exit"),
        ("steps", ("--capture", "steps=500:510"), "the script had 8 steps"),
        ("bash", (), "no Python process"),
    ],
)
def test_a_real_run_says_why_nothing_was_recorded(
    tmp_path: Path, how: str, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = ("bash", "-c", "true") if how == "bash" else (sys.executable, "train.py", how)
    done = started.run(
        "run",
        "--profile",
        "torch",
        *options,
        "--telemetry",
        "off",
        "--quiet",
        "-o",
        "run",
        "--",
        *command,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    found = [
        one
        for one in RunDir(tmp_path / "run").read_manifest().findings
        if one.id in ("nothing-recorded", "hook-message")
    ]
    assert [one.id for one in found] == ["nothing-recorded"], found
    assert says in found[0].message
