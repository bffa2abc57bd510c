"""The process that is to be attached to: what /proc says of it, and why a tool could not reach it.

Attaching is a ptrace call. The kernel judges whether it may be made when somebody opens the
process's memory (ptrace(2), "Ptrace access mode checking"), which changes nothing in that process;
the reasons for a refusal are the owner, Yama's ptrace_scope and the capability CAP_SYS_PTRACE.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import Unavailable, UsageError

PROC = Path("/proc")
ATTACH_VARIABLE = "ROCP_TOOL_ATTACH"
LISTENER = "rocp-bg-attach"  # the thread of rocprofiler-register that waits for tools
_SYS_PTRACE = 19  # number of the capability
_ON = ("1", "true", "on", "yes")


@dataclass(frozen=True)
class Target:
    """A process as its folder in /proc shows it.

    `owner` is its effective user, `listens` whether it waits for AMD's tools, `variable` whether it
    was started with ROCP_TOOL_ATTACH, None where that cannot be read. `reachable`: the kernel would
    let us trace it. `tracer` is the process that traces it now, 0 for none. `began_boot_ns` is its
    start on CLOCK_BOOTTIME. `libraries` are the names of files that it has mapped.
    """

    pid: int
    argv: tuple[str, ...] = ()
    owner: int = 0
    group: int = 0
    listens: bool = False
    variable: bool | None = None
    reachable: bool = True
    tracer: int = 0
    other_files: bool = False
    began_boot_ns: int = 0
    libraries: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The program's name and its number, for sentences."""
        program = Path(self.argv[0]).name if self.argv else "process"
        return f"{program} ({self.pid})"

    def maps(self, library: str) -> bool:
        """Whether it has mapped a library whose name begins so."""
        return any(name.startswith(library) for name in self.libraries)


@dataclass(frozen=True)
class Ourselves:
    """What the kernel goes by on our side: the effective user, whether we hold CAP_SYS_PTRACE, and
    Yama's ptrace_scope (None where the kernel has no Yama).
    """

    user: int
    may_trace: bool
    scope: int | None


def look(pid: int, proc: Path = PROC) -> Target:
    """The process of that number. Raises UsageError where there is none, or it is a thread."""
    folder = proc / str(pid)
    status = _fields(folder / "status")
    if not status or status.get("State", "Z")[:1] in ("Z", "X"):
        raise UsageError(
            f"there is no process {pid} here",
            "look for its number with `pgrep -af NAME`, on the node where it runs",
        )
    if status.get("Tgid", str(pid)) != str(pid):
        raise UsageError(
            f"{pid} is a thread of process {status['Tgid']}", f"name the process: {status['Tgid']}"
        )
    return Target(
        pid=pid,
        argv=tuple(_words(folder / "cmdline")) or (status.get("Name", ""),),
        owner=_effective(status, "Uid"),
        group=_effective(status, "Gid"),
        listens=LISTENER in _threads(folder),
        variable=_has_variable(folder),
        reachable=_opens(folder / "mem"),
        tracer=int(status.get("TracerPid", "0") or 0),
        other_files=_link(folder / "ns" / "mnt") not in ("", _link(proc / "self" / "ns" / "mnt")),
        began_boot_ns=_began(folder),
        libraries=mapped(pid, proc),
    )


def ourselves(proc: Path = PROC) -> Ourselves:
    """Our side of the kernel's decision."""
    held = int(_fields(proc / "self" / "status").get("CapEff", "0"), 16)
    scope = _text(proc / "sys" / "kernel" / "yama" / "ptrace_scope").strip()
    return Ourselves(
        os.geteuid(), bool(held >> _SYS_PTRACE & 1), int(scope) if scope.isdigit() else None
    )


def goes_on(target: Target, proc: Path = PROC) -> bool:
    """Whether the process still runs; another one of its number does not count."""
    folder = proc / str(target.pid)
    return _state(folder) not in ("", "Z", "X") and _began(folder) == target.began_boot_ns


def tracer_of(pid: int, proc: Path = PROC) -> int:
    """The process that traces it at this moment; 0 for none."""
    return int(_fields(proc / str(pid) / "status").get("TracerPid", "0") or 0)


def mapped(pid: int, proc: Path = PROC) -> frozenset[str]:
    """The names of the files that the process has mapped; empty where that cannot be read."""
    found: set[str] = set()
    with suppress(OSError), (proc / str(pid) / "maps").open("rb") as file:
        for line in file:
            if match := re.search(rb"/([^/\n]+)$", line.rstrip(b"\n")):
                found.add(match[1].decode("utf-8", "replace"))
    return frozenset(found)


def require_reachable(target: Target, us: Ourselves) -> None:
    """Raises Unavailable, with the way out, where the kernel would not let a tool attach."""
    if target.tracer:
        raise Unavailable(
            f"{target.name} is traced by process {target.tracer} already (a debugger, or strace)",
            "one process traces another at a time: end that one first",
        )
    if not target.reachable:
        raise _refused(target, us)
    if target.other_files:
        raise Unavailable(
            f"{target.name} runs in a container: it sees other files than this shell",
            "start profharness inside of that container, where the tool's libraries and the run "
            "directory have the same paths for both",
        )


def _refused(target: Target, us: Ourselves) -> Unavailable:
    if target.owner != us.user and not us.may_trace:
        return Unavailable(
            f"{target.name} belongs to user {target.owner}, and you are user {us.user}",
            "attach as that user, or as root",
        )
    if us.scope and not us.may_trace:
        return Unavailable(
            f"this kernel lets no program trace another one (ptrace_scope is {us.scope})",
            "it is final until the next boot: start the program under the layer instead"
            if us.scope >= 3
            else "as root: sysctl kernel.yama.ptrace_scope=0, or attach as root; "
            "in a container: --cap-add SYS_PTRACE",
        )
    return Unavailable(
        f"the kernel does not let you trace {target.name}",
        "it changed its user or holds more rights than you, or a security module forbids it: "
        "attach as root",
    )


def require_attachable(target: Target) -> None:
    """Raises Unavailable where the process does not wait for AMD's tools."""
    if target.listens or target.variable:
        return
    raise Unavailable(
        f"{target.name} was started without {ATTACH_VARIABLE}=1: AMD's tools cannot attach to it",
        "start it anew by `profharness run --attachable -- COMMAND`, or with "
        f"{ATTACH_VARIABLE}=1 in its environment\n--profile telemetry attaches to everything",
    )


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _words(path: Path) -> list[str]:
    """The texts of a file in which each ends with a NUL."""
    return _text(path).rstrip("\0").split("\0") if _text(path) else []


def _fields(path: Path) -> dict[str, str]:
    """`Name: value` of each line."""
    pairs = (line.partition(":") for line in _text(path).splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _effective(status: dict[str, str], name: str) -> int:
    """The second of real, effective, saved and file system's."""
    numbers = status.get(name, "").split()
    return int(numbers[1]) if len(numbers) > 1 else 0


def _threads(folder: Path) -> set[str]:
    return {_text(path).strip() for path in (folder / "task").glob("*/comm")}


def _has_variable(folder: Path) -> bool | None:
    try:
        data = (folder / "environ").read_bytes()
    except OSError:
        return None
    pairs = (word.partition(b"=") for word in data.split(b"\0"))
    values = {name: value for name, _, value in pairs}
    return values.get(ATTACH_VARIABLE.encode(), b"").decode(errors="replace").lower() in _ON


def _opens(path: Path) -> bool:
    """Whether the kernel gives us the process's memory, which it decides as for ptrace."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _after_name(folder: Path) -> list[str]:
    """The fields of /proc/PID/stat from the third (the state) on; the name may hold anything."""
    return _text(folder / "stat").rpartition(")")[2].split()


def _state(folder: Path) -> str:
    return next(iter(_after_name(folder)), "")


def _began(folder: Path) -> int:
    """Field 22 counts clock ticks since boot, 100 of them a second on every machine of today."""
    fields = _after_name(folder)
    return int(fields[19]) * 10**9 // os.sysconf("SC_CLK_TCK") if len(fields) > 19 else 0
