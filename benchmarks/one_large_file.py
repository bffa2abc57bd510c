"""One large Kineto file read by several cores against one: `python benchmarks/one_large_file.py
[--kernels N] [--processes N] [--trace FILE] [--commands LIST] [--keep]`.

A generated trace (a million kernels are 1.9 GB, on disk while this runs) is read by whole commands,
imports included, with `--processes 1` and with `--processes N` in turn; their outputs must be the
same bytes. Between them the machine itself is asked: so many busy loops at once, against the same
loops one after the other. Where other work shares the cores, or two cores are threads of one, the
loops get less than N times as fast, and reading cannot either. A share of 0.5 is twice as fast.

What is compared is the wall time of N processes as a share of that of one, against the loops'
share. The goal for `hotspots` is at most 1.2 times it (exit status 1 where it is missed). Of all
repeats the median counts. Peaks of memory are of a run of their own: the largest resident set of
the process that answers and of the helpers together, sampled every 20 ms.
"""

from __future__ import annotations

import argparse
import filecmp
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import description

MAKE = Path(__file__).resolve().parent / "make_kineto.py"
GOAL = 1.2
COMMANDS = {
    "hotspots": ("hotspots",),
    "geometry": ("hotspots", "--json"),
    "metrics": ("metrics", "--json"),
    "report": ("report", "--force", "-o"),
}
LOOP = "total = 0\nfor number in range({}): total += number * number"
LOOP_NUMBERS = 30_000_000
"""Some seconds: a short loop is over before a virtual machine has shared its cores evenly."""


@dataclass(frozen=True)
class Share:
    """Wall seconds of all repeats with one process and with several, in the order of the runs."""

    one_s: list[float]
    several_s: list[float]

    @property
    def share(self) -> float:
        return statistics.median(self.several_s) / statistics.median(self.one_s)


def seconds(commands: list[list[str]], out: Path | None = None, *, at_once: bool = True) -> float:
    """Wall time of some processes, all at once or one after the other."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(len(commands) if at_once else 1) as pool:
        list(pool.map(lambda command: once(command, out), commands))
    return time.perf_counter() - begun


def once(command: list[str], out: Path | None) -> None:
    with (out or Path("/dev/null")).open("wb") as file:
        subprocess.run(command, check=True, stdout=file)


def command_line(name: str, trace: Path, processes: int, folder: Path) -> tuple[list[str], Path]:
    """The command, and the file in which its answer will be."""
    answer = folder / f"{name}-{processes}"
    words = [*COMMANDS[name], *([str(answer)] if name == "report" else [])]
    line = [sys.executable, "-m", "profharness", *words, str(trace)]
    return [*line, "--processes", str(processes)], answer


def measure(
    names: list[str], trace: Path, processes: int, repeats: int, folder: Path
) -> tuple[Share, dict[str, Share]]:
    """The loops' share and each command's. Raises AssertionError where answers differ."""
    loops = Share([], [])
    shares = {name: Share([], []) for name in names}
    loop = [[sys.executable, "-c", LOOP.format(LOOP_NUMBERS)]] * processes
    for _ in range(repeats):
        for name, share in shares.items():
            answers = []
            # each beside the loops of its kind: a virtual machine is slower in some minutes
            for times, of_loops, count in (
                (share.one_s, loops.one_s, 1),
                (share.several_s, loops.several_s, processes),
            ):
                of_loops.append(seconds(loop, at_once=count > 1))
                line, answer = command_line(name, trace, count, folder)
                times.append(seconds([line], None if name == "report" else answer))
                answers.append(answer)
            assert filecmp.cmp(*answers, shallow=False), f"{name}: the answers differ"
    return loops, shares


def peak_mib(line: list[str]) -> float:
    """The largest resident sets of a process and of those that it starts, added up."""
    peaks: dict[int, int] = {}
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for pid in (process.pid, *children(process.pid)):
                peaks[pid] = max(peaks.get(pid, 0), resident_kib(pid))
            time.sleep(0.02)
    return sum(peaks.values()) / 1024


def children(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:  # it has ended
        return []


def resident_kib(pid: int) -> int:
    try:
        rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(row.split()[1]) for row in rows if row.startswith("VmHWM:")), 0)


def report(
    options: argparse.Namespace, trace: Path, folder: Path
) -> tuple[bool, dict[str, object]]:
    """Measure, print, and say whether the goal is kept."""
    names = options.commands.split(",")
    processes = options.processes
    loops, shares = measure(names, trace, processes, options.repeats, folder)
    print(
        f"{trace.stat().st_size / 1e6:.0f} MB, {processes} processes, medians of "
        f"{options.repeats}; {processes} busy loops at once take {loops.share:.3f} of the time "
        "that they take one after the other"
    )
    print(
        f"{'':10}{'1 process':>11}{processes:>3} at once{'share':>8}{'/ loops':>9}{'peak MiB':>16}"
    )
    rows = {}
    for name, share in shares.items():
        peaks = [peak_mib(command_line(name, trace, count, folder)[0]) for count in (1, processes)]
        against = share.share / loops.share
        rows[name] = {
            **asdict(share),
            "share": round(share.share, 4),
            "against_loops": round(against, 3),
            "peak_mib": [round(peak, 1) for peak in peaks],
        }
        print(
            f"{name:10}{statistics.median(share.one_s):9.2f} s"
            f"{statistics.median(share.several_s):9.2f} s{share.share:8.3f}{against:9.2f}"
            f"{peaks[0]:8.0f}{peaks[1]:8.0f}"
        )
    kept = "hotspots" not in rows or shares["hotspots"].share <= GOAL * loops.share
    return kept, {
        "machine": description.machine(("profharness", "numpy", "msgspec")),
        "bytes": trace.stat().st_size,
        "kernels": options.kernels,
        "processes": processes,
        "loops": {**asdict(loops), "share": round(loops.share, 4)},
        "commands": rows,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--trace", type=Path, help="a trace that exists, of so many --kernels")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = options.trace or folder / "trace.json"
        if options.trace is None:
            make = [str(MAKE), "--kernels", str(options.kernels), "-o", str(trace)]
            subprocess.run([sys.executable, *make], check=True, stderr=subprocess.DEVNULL)
        kept, results = report(options, trace, folder)
        if options.keep:
            print(description.keep("one-large-file", results))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
