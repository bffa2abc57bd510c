"""rocprofv3 --pid and rocprof-sys-attach: they record what `stand_in_target` did meanwhile.

The target says in its log when it launched a kernel; those between attaching and letting go are in
the files. STAND_IN_ATTACH is how the tool behaves: crash (it dies after having attached), hang (it
does not let go, and takes no signal but SIGKILL), hold (the same, and it traces the target), silent
(it ends well and leaves nothing), or remember (it keeps its options in the file where the real one
does).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

_MODE = os.environ.get("STAND_IN_ATTACH", "")
_PTRACE_SEIZE = 0x4206
_BEHIND_S = 0.3  # that files come after the end of an older tool


def _environment(pid: int) -> Mapping[str, str]:
    data = Path(f"/proc/{pid}/environ").read_bytes()
    pairs = (word.decode().partition("=") for word in data.split(b"\0") if word)
    return {name: value for name, _, value in pairs}


def _attach(pid: int) -> Path:
    """The target's log; the end of the program where it does not wait for tools."""
    variables = _environment(pid)
    if variables.get("ROCP_TOOL_ATTACH") != "1":
        sys.stderr.write(
            f"E0102 09:53:32 rocattach.cpp:358] Cannot attach to process {pid}: 'rocp-bg-attach' "
            "thread not found. The target process does not appear to have attach support enabled.\n"
        )
        sys.exit(1)
    if _MODE == "crash":
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGSEGV)
    if _MODE == "hold":
        ctypes.CDLL(None).ptrace(_PTRACE_SEIZE, pid, None, None)
    if _MODE in ("hang", "hold"):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return Path(variables["STAND_IN_TARGET_LOG"])


def _launched(log: Path, began: int, ended: int) -> list[int]:
    """When the target launched a kernel, CLOCK_BOOTTIME ns."""
    times = [int(line) for line in log.read_text().split() if line.isdigit()]
    return [at for at in times if began <= at < ended]


def _hang() -> None:
    while _MODE in ("hang", "hold"):
        time.sleep(60)


def play_v3(sdk: tuple[int, ...], options: argparse.Namespace) -> NoReturn:
    """Attach, wait for the time or for SIGINT, write."""
    if getattr(options, "collection_period", None):
        sys.stderr.write("Fatal error: --collection-period is not compatible with attach mode\n")
        sys.exit(1)
    _remember(options)
    pid = int(options.pid)
    log = _attach(pid)
    began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    stop: list[int] = []
    if _MODE not in ("hang", "hold"):
        signal.signal(signal.SIGINT, lambda number, _: stop.append(number))
    print(f"Attaching to PID {pid} using library librocprofv3-attach.so :: success")
    sys.stdout.flush()
    until = time.monotonic() + int(options.attach_duration_msec or 3_600_000) / 1e3
    while time.monotonic() < until and not stop and Path(f"/proc/{options.pid}").exists():
        time.sleep(0.005)
    _hang()
    ended = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    base = options.output_file
    for key, value in (
        ("hostname", socket.gethostname()),
        ("pid", str(options.pid)),
        ("nid", str(options.pid)),
    ):
        base = base.replace(f"%{key}%", value)
    path = Path(options.output_directory) / f"{base}_results.db"
    _write(path, "rocpd", pid, _launched(log, began, ended), late=sdk < (1, 3, 5))
    sys.exit(0)


def _remember(options: argparse.Namespace) -> None:
    """The options of the first attachment are those of all later ones."""
    if _MODE != "remember":
        return
    memory = Path(f"/tmp/rocprofv3_attach_{options.pid}.pkl")
    traces = {name: value for name, value in vars(options).items() if name.endswith("_trace")}
    if not memory.exists():
        memory.write_bytes(pickle.dumps(traces))
    elif pickle.loads(memory.read_bytes()) != traces:
        raise RuntimeError("trace options cannot be changed when reattaching")


def play_sys(release: str, arguments: list[str]) -> int:
    """Attach, wait for a line on stdin or its end, write into a folder of this session."""
    del release
    if arguments == ["--version"]:
        sys.stderr.write("[rocprof-sys-attach] unknown option: --version\n")
        return 1
    parser = argparse.ArgumentParser(prog="rocprof-sys-attach", allow_abbrev=False)
    parser.add_argument("-p", "--pid", type=int, required=True)
    parser.add_argument("-o", "--output", default="rocprof-sys-output")
    parser.add_argument("-F", "--format", default="")
    options = parser.parse_args(arguments)
    formats = options.format.split(",")
    if set(formats) - {"perfetto", "rocpd"}:
        parser.error(f"invalid format: {options.format}")
    log = _attach(options.pid)
    began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    print(f"[rocprof-sys-attach] Attached to process {options.pid}. Press ENTER to detach.")
    sys.stdout.flush()
    select.select([sys.stdin], [], [])
    _hang()
    ended = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    times = _launched(log, began, ended)
    timed = os.environ.get("ROCPROFSYS_TIME_OUTPUT", "ON").upper() == "ON"
    folder = Path(options.output) / (time.strftime("%Y-%m-%d_%H.%M.%S") if timed else "")
    for kind, name in (
        ("perfetto", f"perfetto-trace-{options.pid}.pftrace"),
        ("rocpd", f"rocpd-{options.pid}.db"),
    ):
        if kind in formats:
            _write(folder / name, kind, options.pid, times, late=True)
    print(f"[rocprof-sys-attach] Detached from process {options.pid}")
    return 0


def _write(path: Path, kind: str, pid: int, times: list[int], *, late: bool) -> None:
    """The file, by the target's own hand where the tool does not wait for it."""
    if _MODE == "silent":
        return
    if late and os.fork():
        return
    if late:
        os.setsid()
        time.sleep(_BEHIND_S)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "rocpd":
        _write_rocpd(path, pid, times)
    else:
        _write_perfetto(path, pid, times)
    if late:
        os._exit(0)


def _write_rocpd(path: Path, pid: int, times: list[int]) -> None:
    from tests.fakes.rocpd_files import write_rocpd
    from tests.fakes.rocprofv3_program import Call, Kernel, Program, Symbol

    kernels = tuple(
        Kernel(10, at + 3_000, at + 23_000, 2, n + 1, n + 1, (2048, 1, 1), (256, 1, 1), tid=pid)
        for n, at in enumerate(times)
    )
    calls = tuple(
        Call("HIP_RUNTIME_API", "hipLaunchKernel", at, at + 1_500, n + 1, pid)
        for n, at in enumerate(times)
    )
    program = Program(
        socket.gethostname(), pid, symbols=(Symbol(10, "step"),), kernels=kernels, calls=calls
    )
    write_rocpd(path, program, environment={})


def _write_perfetto(path: Path, pid: int, times: list[int]) -> None:
    from tests.fakes.stand_in_files import write_perfetto

    kernels: list[dict[str, Any]] = [
        {"name": "step", "call": at, "start": at + 3_000, "end": at + 23_000} for at in times
    ]
    write_perfetto(path, kernels, pid)
