"""Watches a command's processes for frameworks that run without our hooks, and reads what the hooks
wrote.

A process that has torch or onnxruntime loaded and left no hello file is an error-level finding: its
work is in no trace. The look is cheap (memory maps, once a second) and from outside.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from profharness.findings import Finding, finding
from profharness.launchers.process_tree import tree
from profharness.layers.hooks import starts_python
from profharness.rundir.manifest import Hello, RankOutcome
from profharness.rundir.paths import write_atomic
from profharness.secrets.patterns import clean_argv

if TYPE_CHECKING:
    import psutil

EVERY_S = 1.0
NAME_PYTHON = (
    "profile the Python command itself, in place of what starts it, with --hook exec: PYTHONPATH "
    "or sitecustomize does not reach that process"
)
"""Where the command does not start with python, which --hook exec refuses."""
_FLAGS, _FORKED_NO_EXEC = 6, 0x40  # field behind the name in /proc/PID/stat, and PF_FORKNOEXEC
# libraries that show a framework in a process's memory map
_LIBRARIES = (("torch", "libtorch_cpu.so"), ("onnxruntime", "onnxruntime_pybind11_state"))


class Observer:
    """Follows the tree below one process. Processes that live for less than a second may be
    missed.
    """

    def __init__(
        self, hooks: Path, pass_name: str = "", command: Sequence[str] = ("python",)
    ) -> None:
        """The pass is named where several leave their hello files in one folder; by the command's
        words it is known which ways to load the hooks there are.
        """
        self._hooks, self._pass, self._command = hooks, pass_name, command
        self._root: int | None = None
        self._next = 0.0
        self._seen: dict[int, tuple[str, str]] = {}

    def follow(self, pid: int) -> None:
        """Look at the tree below this process from now on, in place of any earlier one."""
        self._root = pid
        self._next = time.monotonic() + EVERY_S

    def look(self) -> None:
        """At most once a second; call it as often as you like."""
        if self._root is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_S
        for process in tree(self._root):
            pid = process.pid
            # a fork has its parent's memory until it calls exec: the parent was looked at
            if pid in self._seen or _awaits_exec(pid):
                continue
            if framework := _framework(pid):
                self._seen[pid] = (framework, _command_line(process))

    def report(self, add: Callable[[Finding], None]) -> None:
        """One finding for each process that used a framework without a hook; the hooks end at a
        fork without exec, of which only a pass that was to record something says so.
        """
        hellos = read_hellos(self._hooks)
        helloed = {hello.pid for hello in hellos}
        for used, pids in self._forked(hellos).items():
            several = len(pids) > 1
            figures: dict[str, Any] = {"pid": pids[0]}
            if several:
                figures["processes"] = len(pids)
            add(
                finding(
                    "fork-not-recorded",
                    f"process{'es' if several else ''} {', '.join(map(str, pids))} "
                    f"{'were' if several else 'was'} forked and used {used}, whose profiler does "
                    f"not survive that: what {'they' if several else 'it'} computed is in no trace",
                    **figures,
                )
            )
        for pid, (framework, line) in sorted(self._seen.items()):
            if pid not in helloed:
                said = finding(
                    "hook-not-loaded",
                    f"process {pid} ({line}) used {framework}, but our hooks did not load in it",
                    pid=pid,
                )
                is_python = starts_python(self._command)
                add(said if is_python else msgspec.structs.replace(said, advice=NAME_PYTHON))

    def _forked(self, hellos: Sequence[Hello]) -> dict[str, list[int]]:
        """The forked processes of this pass that used a framework which it was to record, by the
        framework.
        """
        groups: dict[str, list[int]] = {}
        for hello in hellos:
            of_pass = not self._pass or (hello.layers and hello.pass_name in ("", self._pass))
            if hello.forked and hello.used and of_pass:
                groups.setdefault(", ".join(hello.used), []).append(hello.pid)
        return groups


def read_hellos(folder: Path) -> tuple[Hello, ...]:
    """All hello files, by pid; one that is cut or foreign is left out (its process then counts as
    not hooked).
    """
    hellos: list[Hello] = []
    for path in sorted(folder.glob("hello-*.json")):
        try:
            hellos.append(msgspec.json.decode(path.read_bytes(), type=Hello))
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            continue
    return tuple(sorted(hellos, key=lambda hello: hello.pid))


def with_ranks(hellos: Sequence[Hello], outcomes: Sequence[RankOutcome]) -> tuple[Hello, ...]:
    """Those, and one for each rank whose program no hook entered: what its harness knows of it."""
    known = {hello.rank for hello in hellos}
    unseen = {one.rank: one for one in reversed(outcomes) if one.rank not in known}
    return (
        *hellos,
        *(
            Hello(pid=one.pid, rank=rank, host=one.host, pass_name=one.pass_name)
            for rank, one in sorted(unseen.items())
        ),
    )


def clean_hellos(folder: Path) -> None:
    """Replace the secrets of the command lines that the hooks of version 0.1 wrote down, with all
    values, in a run that is taken up again; hooks of this version write none.
    """
    for path in sorted(folder.glob("*.json")):
        try:
            hello = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
            argv = msgspec.convert(hello.get("argv", ()), tuple[str, ...])
            if clean_argv(argv) != argv:
                write_atomic(path, msgspec.json.encode({**hello, "argv": clean_argv(argv)}))
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            continue  # cut, foreign, or on a folder that is full: the run itself is done


def read_byes(folder: Path) -> frozenset[int]:
    """The processes whose Python ended by itself (the hooks' exit function ran), by pid."""
    return frozenset(
        int(number)
        for path in folder.glob("bye-*.json")
        if (number := path.stem.rpartition("-")[2]).isdigit()
    )


def _awaits_exec(pid: int) -> bool:
    """By the kernel's flag of a process that was forked and has called no exec since."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return bool(int(fields[_FLAGS]) & _FORKED_NO_EXEC)
    except (OSError, IndexError, ValueError):
        return False


def _framework(pid: int) -> str:
    # psutil has the maps with the size of each, for which the kernel counts every page of the
    # workload while that must not map any
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return ""
    return next((name for name, library in _LIBRARIES if library in maps), "")


def _command_line(process: psutil.Process) -> str:
    import psutil

    try:
        words = process.cmdline()
    except psutil.Error:
        return "ended"
    readable = [os.fsencode(word).decode(errors="replace") for word in words if word]
    return " ".join(clean_argv(readable))[:120]
