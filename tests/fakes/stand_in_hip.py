"""A stand-in for the HIP runtime with a tracer inside it: what a program launches goes into the
tool's files at its exit.

The stand-in tools (`stand_in_tools`) set STAND_IN_TRACER, as the real ones set LD_PRELOAD and
ROCPROF_*; without it nothing is written. Children inherit it and write files of their own.

STAND_IN_FINALIZE is how the tracer's finalisation goes, which comes after Python's own end: silent
(it writes nothing), hang, abort, segv, status:N, and early-hang or early-abort where it comes while
Python tears its modules down; STAND_IN_FINALIZE_RANKS (1,2) leaves the other ranks alone.
STAND_IN_COUNTERS_AT_ONCE is how many counters the device counts in one pass, STAND_IN_UNCOUNTABLE
one that it never does; a tracer that is asked for more aborts at the first kernel (with
STAND_IN_REFUSAL=hang it goes on in its handler, as the real one may).
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fakes.stand_in_tools import ROCTX

_asked: dict[str, Any] = json.loads(os.environ.get("STAND_IN_TRACER", "{}"))
_began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
_kernels: list[dict[str, Any]] = []
_copies: list[dict[str, Any]] = []
_allocations: list[tuple[int, int]] = []


def launch(name: str, workgroups: int = 8, size: int = 256, dur_ns: int = 20_000) -> None:
    """Record one kernel with the call that launched it."""
    _refuse_counters()
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if _is_recording(now):
        _kernels.append(
            {
                "name": name,
                "call": now,
                "start": now + 3_000,
                "end": now + 3_000 + dur_ns,
                "workgroups": workgroups,
                "size": size,
            }
        )


def copy(size: int, direction: str = "HOST_TO_DEVICE") -> None:
    """Record one copy with its call."""
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if _is_recording(now):
        _copies.append(
            {
                "direction": direction,
                "call": now,
                "start": now + 2_000,
                "end": now + 9_000,
                "bytes": size,
            }
        )


def allocate(size: int) -> None:
    """Record that so many bytes of device memory were taken."""
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if _is_recording(now):
        _allocations.append((now, size))


def _roctx() -> Any:
    """The stand-in roctx library, where the tool's release has one."""
    try:
        return ctypes.CDLL(ROCTX)
    except OSError:
        return None


def _is_recording(now: int) -> bool:
    if period := _asked.get("period"):
        return bool(period[0] <= now - _began < period[0] + period[1])
    library = _roctx()
    return (
        "ROCPROF_SELECTED_REGIONS" not in os.environ
        if library is None
        else bool(library.stand_in_recording())
    )


def _refuse_counters() -> None:
    """In the words of the real tool, which aborts the process at its first kernel."""
    counters = _asked.get("pmc", [])
    at_once = max((len(group) for group in _asked.get("groups") or [counters]), default=0)
    most = int(os.environ.get("STAND_IN_COUNTERS_AT_ONCE", "100"))
    if at_once <= most and os.environ.get("STAND_IN_UNCOUNTABLE", "none") not in counters:
        return
    sys.stderr.write(
        "Could not construct profile cfg failed with error code 38: "
        "Request exceeds the capabilities of the hardware to collect\n"
        "rocprofv3 caught signal 6...\n"
    )
    sys.stderr.flush()
    if os.environ.get("STAND_IN_REFUSAL") == "hang":
        time.sleep(600)
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGABRT)


class _Finalisation:
    """Destroyed with the module, after every exit function of Python."""

    def __init__(self, mode: str) -> None:
        self._mode, self._sleep, self._kill, self._pid = mode, time.sleep, os.kill, os.getpid()
        self._signal, self._abort, self._default = signal.signal, signal.SIGABRT, signal.SIG_DFL

    def __del__(self) -> None:
        if self._mode == "early-hang":
            self._sleep(600)
        elif self._mode == "early-abort":
            self._signal(self._abort, self._default)
            self._kill(self._pid, self._abort)


def _at_the_very_end(mode: str) -> None:
    """Where a real tracer's library finalises: an exit function of C, registered when it was
    loaded.
    """
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    kind, _, number = mode.partition(":")
    function, argument = {
        "hang": ("sleep", 600),
        "abort": ("abort", 0),
        "segv": ("raise", int(signal.SIGSEGV)),
        "status": ("_exit", int(number or 0)),
    }[kind]
    libc.__cxa_atexit(ctypes.cast(getattr(libc, function), ctypes.c_void_p), argument, None)


def _on_signal(number: int, _frame: object) -> None:
    """The tool's handler: it says so, finalises, and passes the signal on, or does not come
    so far.
    """
    sys.stderr.write(f"rocprofv3 caught signal {number}...\n")
    sys.stderr.flush()
    _at_exit()
    mode = os.environ.get("STAND_IN_FINALIZE", "")
    if mode == "hang":
        time.sleep(600)
    if mode.startswith("status:"):
        os._exit(int(mode.partition(":")[2]))
    passed_on = signal.SIGSEGV if mode == "segv" else number
    signal.signal(passed_on, signal.SIG_DFL)
    os.kill(os.getpid(), passed_on)


def _markers() -> Any:
    """The ranges that the process made through the stand-in roctx library, as the tool names
    them.
    """
    from tests.fakes.rocprofv3_program import Call

    library = _roctx() if _asked.get("markers") else None
    if library is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranges"
        library.stand_in_dump(str(path).encode())
        for number, line in enumerate(path.read_text().splitlines()):
            start, end, tid, name = line.split(" ", 3)
            yield Call(
                "MARKER_CORE_RANGE_API",
                "roctxThreadRangeA",
                int(start),
                int(end),
                10_001 + number,
                int(tid),
                name,
            )


def _program(counters: list[str]) -> Any:
    from tests.fakes.rocprofv3_program import Allocation, Call, Copy, Kernel, Program, Symbol

    pid = os.getpid()
    names = list(dict.fromkeys(kernel["name"] for kernel in _kernels))
    symbols = tuple(Symbol(10 + n, name) for n, name in enumerate(names))
    kernels = tuple(
        Kernel(
            10 + names.index(k["name"]),
            k["start"],
            k["end"],
            2,
            n + 1,
            2 * n + 1,
            (k["workgroups"] * k["size"], 1, 1),
            (k["size"], 1, 1),
            tid=pid,
            counters=tuple((name, (float(k["workgroups"]),)) for name in counters),
        )
        for n, k in enumerate(_kernels)
    )
    copies = tuple(
        Copy(c["direction"], c["start"], c["end"], c["bytes"], 0, 2, 2 * n + 2, tid=pid)
        for n, c in enumerate(_copies)
    )
    calls = (
        *(
            Call("HIP_RUNTIME_API", "hipLaunchKernel", k["call"], k["call"] + 1_500, 2 * n + 1, pid)
            for n, k in enumerate(_kernels)
        ),
        *(
            Call("HIP_RUNTIME_API", "hipMemcpyAsync", c["call"], c["call"] + 1_000, 2 * n + 2, pid)
            for n, c in enumerate(_copies)
        ),
        *_markers(),
    )
    allocations = tuple(
        Allocation("ALLOC", "REAL", at, at + 500, size, 2, 20_001 + n, pid)
        for n, (at, size) in enumerate(_allocations)
    )
    # what the runtime takes for the first kernel's registers that do not fit
    scratch = tuple(
        Allocation("ALLOC", "SCRATCH", k["call"], k["call"] + 700, 1 << 16, 2, 30_001, pid)
        for k in _kernels[:1]
    )
    return Program(
        socket.gethostname(),
        pid,
        symbols=symbols,
        kernels=kernels,
        copies=copies,
        calls=calls,
        allocations=(*allocations, *scratch),
    )


def _keys(text: str) -> str:
    """The tool's placeholders, as far as it is asked for them here."""
    rank = os.environ.get("SLURM_PROCID") or os.environ.get("OMPI_COMM_WORLD_RANK")
    for key, value in (
        ("hostname", socket.gethostname()),
        ("pid", str(os.getpid())),
        ("nid", rank or str(os.getpid())),
        ("rank", rank or "0"),
    ):
        text = text.replace(f"%{key}%", value)
    return text


def _write_v3(asked: dict[str, Any]) -> None:
    from dataclasses import replace

    from tests.fakes.pc_sampling_files import write_samples, write_threads
    from tests.fakes.rocpd_files import write_rocpd
    from tests.fakes.rocprofv3_files import GENERATIONS, Generation, write_csv, write_json

    spill = Path(os.environ.get("ROCPROF_TMPDIR", Path.cwd()))
    if spill == Path("/") or not os.access(spill, os.W_OK):
        sys.stderr.write(
            "ring_buffer: munmap failed: Invalid argument\nmmap failed with errno 22\n"
            "rocprofv3 caught signal 6...\n"
        )
        sys.stderr.flush()
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGABRT)
    whole = _program(asked["pmc"])
    calls = tuple(call for call in whole.calls if asked["hip"] or call.domain.startswith("MARKER"))
    program = replace(
        whole,
        calls=calls,
        copies=whole.copies if asked["copies"] else (),
        allocations=tuple(
            one
            for one in whole.allocations
            if asked["scratch" if one.level == "SCRATCH" else "allocations"]
        ),
    )
    base = Path(_keys(asked["directory"])) / asked["sub"] / _keys(asked["file"])
    base.parent.mkdir(parents=True, exist_ok=True)
    if "csv" in asked["formats"]:
        generation: Generation = next(
            (one for one in GENERATIONS if one == asked["release"]), "7.0"
        )
        write_csv(base.parent, program, generation, base.name + "_")
        if sampling := asked["sampling"]:
            name = f"{base.name}_pc_sampling_{sampling['method']}.csv"
            write_samples(base.with_name(name), program, sampling["method"], sampling["interval"])
    if asked["att"]:
        write_threads(Path(_keys(asked["directory"])), program, f"{os.getpid()}_")
    if "json" in asked["formats"]:
        write_json(base.with_name(base.name + "_results.json"), program)
    if "rocpd" in asked["formats"]:
        # the tool stores the whole environment; here what tests plant, so that a developer's own
        # tokens change no result
        planted = {name: value for name, value in os.environ.items() if name.startswith("PLANTED_")}
        write_rocpd(base.with_name(base.name + "_results.db"), program, environment=planted)
    for path in sorted(base.parent.glob(base.name + "_*")):
        sys.stderr.write(
            f"E20260102 09:53:32.744880 {os.getpid()} output_stream.cpp:111] Opened result "
            f"file: {path}\n"
        )


def _write_raw(asked: dict[str, Any]) -> None:
    """For tools that make their files themselves when the program has ended."""
    path = Path(asked["folder"]) / f"raw-{os.getpid()}.json"
    path.write_text(json.dumps({"pid": os.getpid(), "kernels": _kernels, "copies": _copies}))


def _write_sys(asked: dict[str, Any]) -> None:
    """The files that this version of rocprof-sys leaves with the options that it got."""
    from tests.fakes.rocpd_files import write_rocpd
    from tests.fakes.stand_in_files import write_perfetto

    folder = Path(asked["path"] or "rocprof-sys-python-output")
    if asked["timed"]:
        folder /= "2026-01-02_09.53"
    folder.mkdir(parents=True, exist_ok=True)
    pid = f"-{os.getpid()}" if asked["by_pid"] else ""
    if asked["perfetto"]:
        stem, dot, ending = asked["perfetto"].rpartition(".")
        write_perfetto(folder / f"{stem}{pid}{dot}{ending}", _kernels, os.getpid())
    if asked["rocpd"]:
        write_rocpd(folder / f"rocpd{pid}.db", _program([]), environment={})
    if asked["text"]:
        (folder / f"wall_clock{pid}.txt").write_text("REAL-CLOCK TIMER (I.E. WALL-CLOCK TIMER)\n")


def _write_log() -> None:
    """What the runtime logs of each launch with AMD_LOG_LEVEL."""
    path = Path(f"{os.environ['AMD_LOG_LEVEL_FILE']}_{os.getpid()}")
    with path.open("w") as file:
        for k in _kernels:
            now = k["call"] // 1000
            ids = f"[pid:{os.getpid()} tid: 0x7f00]"
            grid = k["workgroups"] * k["size"]
            file.write(
                f":3:hip_module.cpp           :1   : {now:010d} us: "
                f"{ids}  hipLaunchKernel ( 0x1, {{{k['workgroups']},1,1}}, {{{k['size']},1,1}}, "
                "0x2, 0, stream:<null> ) \n"
                f":3:rocvirtual.cpp           :2   : {now + 1:010d} us: {ids} ShaderName : "
                f"{k['name']}\n"
                f":5:rocvirtual.cpp           :3   : {now + 2:010d} us: {ids} SWq=0x1, HWq=0x2, "
                "id=1, Dispatch Header = 0x1502 (type=2, barrier=1, acquire=2, release=2), "
                f"setup=1, grid=[{grid}, 1, 1], workgroup=[{k['size']}, 1, 1], "
                "private_seg_size=0, group_seg_size=0, kernel_obj=0x3, completion_signal=0x0\n"
                f":3:hip_module.cpp           :4   : {now + 3:010d} us: {ids} hipLaunchKernel: "
                "Returned hipSuccess :  duration: 3 us\n"
            )


def _at_exit() -> None:
    asked = _asked
    if os.environ.get("AMD_LOG_LEVEL_FILE"):
        _write_log()
    if not asked or os.environ.get("STAND_IN_FINALIZE") == "silent":
        return
    {"rocprofv3": _write_v3, "raw": _write_raw, "rocprof-sys": _write_sys}[asked["tool"]](asked)


atexit.register(_at_exit)
if os.environ.get("RANK", "0") not in os.environ.get(
    "STAND_IN_FINALIZE_RANKS", os.environ.get("RANK", "0")
).split(","):
    os.environ.pop("STAND_IN_FINALIZE", None)
_last = _Finalisation(os.environ.get("STAND_IN_FINALIZE", ""))
if _asked and os.environ.get("STAND_IN_FINALIZE", "").partition(":")[0] in (
    "hang",
    "abort",
    "segv",
    "status",
):
    _at_the_very_end(os.environ["STAND_IN_FINALIZE"])
if _asked.get("tool") == "rocprofv3":
    signal.signal(signal.SIGABRT, _on_signal)
