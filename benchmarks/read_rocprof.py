"""Speed and memory of the readers of rocprofv3's files beside plain reads of the same columns:
`python benchmarks/read_rocprof.py`.

It makes a CSV kernel trace and a rocpd database of a million dispatches (`--kernels`); a JSON file
is read where one is named (`--json FILE`), else made with 44 000 dispatches. Each way of reading
runs in a process of its own, imports included: CPU time (user and system) is the least of the
repeats, the peak is that process's largest resident set. A reader's figure includes links, devices
and geometry in workgroups; the plain reads stop at the recorded columns. The goal is at most twice
the CPU time of the cheapest plain read; where a form misses it, the exit code is 1. `--keep` writes
the figures to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import description

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# the checkout's own writers of these formats
from tests.fakes.rocpd_files import write_rocpd  # noqa: E402  the checkout comes first
from tests.fakes.rocprofv3_files import write_json  # noqa: E402  the checkout comes first
from tests.fakes.rocprofv3_program import program  # noqa: E402  the checkout comes first

OURS = """
import sys
from pathlib import Path
from profharness.readers.rocprofv3 import {module}
trace = {module}.read(Path(sys.argv[1]))
count, total = len(trace.kernels), int(trace.kernels.dur_ns.sum())
"""
COLUMNS = (
    "name, agent_log_index, queue_id, stream_id, tid, dispatch_id, stack_id, start, [end], "
    "grid_x, grid_y, grid_z, workgroup_x, workgroup_y,"
    " workgroup_z, lds_size, static_lds_size, scratch_size, vgpr_count, accum_vgpr_count, "
    "sgpr_count"
)
WAYS = {
    "rocpd": {
        "profharness": OURS.format(module="rocpd_reader"),
        "pandas": f"""
import sqlite3, sys, pandas
table = pandas.read_sql("SELECT {COLUMNS} FROM kernels", sqlite3.connect(sys.argv[1]))
count, total = len(table), int((table.end - table.start).sum())
""",
        "sqlite3": f"""
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT {COLUMNS} FROM kernels").fetchall()
count, total = len(rows), sum(row[8] - row[7] for row in rows)
""",
    },
    "csv": {
        "profharness": OURS.format(module="csv_reader"),
        "pandas": """
import sys, pandas
table = pandas.read_csv(sys.argv[1])
count, total = len(table), int((table.End_Timestamp - table.Start_Timestamp).sum())
""",
    },
    "json": {
        "profharness": OURS.format(module="json_reader"),
        "json": """
import gzip, json, sys
data = (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rb").read()
records = json.loads(data)["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"]
count, total = len(records), sum(r["end_timestamp"] - r["start_timestamp"] for r in records)
""",
    },
}
# VmHWM begins with the program; the largest resident set of getrusage would be that of this script,
# which started it
MEASURE = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps([used.ru_utime + used.ru_stime, peak / 1024, count, total]))
"""
HEADER = (
    "Kind",
    "Agent_Id",
    "Queue_Id",
    "Stream_Id",
    "Thread_Id",
    "Dispatch_Id",
    "Kernel_Id",
    "Kernel_Name",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "SGPR_Count",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
)
BATCH = 200
GOAL = 2.0  # times the CPU time of the cheapest plain read


def make_csv(path: Path, kernels: int) -> Path:
    rng = random.Random(1)
    names = [
        f"void at::native::vectorized_elementwise_kernel<{n}, float, std::array<char*, "
        f"{n}ul> >(int, float)"
        for n in range(200)
    ]

    def lines() -> Iterator[str]:
        yield ",".join(f'"{name}"' for name in HEADER)
        start = 63_857_982_592_000
        for n in range(1, kernels + 1):
            kind, start = rng.randrange(200), start + 6000
            yield (
                '"KERNEL_DISPATCH","Agent '
                f'2",16,{n % 5},4711,{n},{kind},"{names[kind]}",{3 * n},{start},'
                f"{start + rng.randrange(5000)},"
                f"0,0,32,4,48,256,1,1,{256 * (kind + 1)},1,1"
            )

    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines())
    return path


def make_rocpd(path: Path, kernels: int) -> Path:
    """A small database whose dispatches are repeated later and later."""
    write_rocpd(path, program(1, BATCH, counters=False))
    connection = sqlite3.connect(path)
    events, dispatches = (
        connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ?",
            (f"rocpd_{kind}_0%",),
        ).fetchone()[0]
        for kind in ("event", "kernel_dispatch")
    )
    connection.execute("CREATE TEMP TABLE times (n INTEGER PRIMARY KEY)")
    connection.executemany(
        "INSERT INTO times VALUES (?)", ((n,) for n in range(1, max(kernels // BATCH, 1)))
    )
    first = connection.execute(f'SELECT MAX(id) FROM "{events}"').fetchone()[0]
    event = f"{first} + (n - 1) * {BATCH} + k.id"
    connection.execute(
        f'INSERT INTO "{events}" SELECT {event}, e.guid, e.category_id, e.stack_id + n * 1000, '
        f'0, 0, "{{}}", "{{}}", "{{}}"'
        f' FROM times, "{dispatches}" k JOIN "{events}" e ON e.id = k.event_id'
    )
    moved = {
        "id": f"k.id + n * {BATCH}",
        "dispatch_id": f"k.dispatch_id + n * {BATCH}",
        "start": "k.start + n * 10000000",
        "end": 'k."end" + n * 10000000',
        "event_id": event,
    }
    names = [row[1] for row in connection.execute(f'PRAGMA table_info("{dispatches}")')]
    columns = ", ".join(moved.get(name, f'k."{name}"') for name in names)
    connection.execute(f'INSERT INTO "{dispatches}" SELECT {columns} FROM times, "{dispatches}" k')
    connection.commit()
    connection.close()
    return path


def measure(script: str, path: Path, repeats: int) -> tuple[float, float, int, int]:
    """CPU seconds, peak MiB, kernels and their total ns."""
    runs = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", script + MEASURE, str(path)],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        runs.append(json.loads(done.stdout))
    return min(run[0] for run in runs), max(run[1] for run in runs), runs[0][2], runs[0][3]


def report(form: str, path: Path, repeats: int) -> dict[str, object]:
    """Print one form's figures; also what is kept of them."""
    found = {name: measure(script, path, repeats) for name, script in WAYS[form].items()}
    if len({figures[2:] for figures in found.values()}) > 1:
        raise SystemExit(f"{form}: the ways do not agree: {found}")
    base = found["profharness"]
    print(
        f"\n{form}: {path.stat().st_size / 1e6:.0f} MB, {base[2]} kernels, {base[3]} ns in all; "
        f"the least CPU time of {repeats} runs each"
    )
    print(f"{'':12}{'CPU s':>8}{'peak MiB':>10}{'profharness takes':>19}")
    for name, (cpu, peak, *_) in found.items():
        print(
            f"{name:12}{cpu:8.2f}{peak:10.0f}"
            + (
                ""
                if name == "profharness"
                else f"{base[0] / cpu:13.2f} x CPU, {base[1] / peak:.2f} x memory"
            )
        )
    ratio = base[0] / min(cpu for name, (cpu, *_) in found.items() if name != "profharness")
    print(
        f"{'goal':12}{ratio:8.2f} x the cheapest plain read, at most {GOAL:g}: "
        f"{'kept' if ratio <= GOAL else 'missed'}"
    )
    return {
        "bytes": path.stat().st_size,
        "kernels": base[2],
        "kernel_ns": base[3],
        "ratio": round(ratio, 3),
        "kept": ratio <= GOAL,
        "ways": {
            name: {"cpu_s": round(cpu, 3), "peak_mib": round(peak, 1)}
            for name, (cpu, peak, *_) in found.items()
        },
    }


def keep(forms: dict[str, dict[str, object]], repeats: int) -> Path:
    """The figures in benchmarks/results, with what they were measured on."""
    described = {
        **description.machine(("profharness", "numpy", "pandas")),
        "sqlite": sqlite3.sqlite_version,
    }
    return description.keep(
        "read-rocprof", {"goal": GOAL, "repeats": repeats, "machine": described, "forms": forms}
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path, help="a recorded *_results.json[.gz]")
    parser.add_argument(
        "--keep", action="store_true", help="write the figures to benchmarks/results"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        small = program(1, min(44_000, options.kernels), counters=False)
        document = options.json or write_json(made / "4711_results.json", replace(small, calls=()))
        forms = {}
        for form, path in (
            ("json", document),
            ("csv", make_csv(made / "4711_kernel_trace.csv", options.kernels)),
            ("rocpd", make_rocpd(made / "4711_results.db", options.kernels)),
        ):
            forms[form] = report(form, path, options.repeats)
    if options.keep:
        print(f"\n{keep(forms, options.repeats).relative_to(ROOT)}")
    return 0 if all(one["kept"] for one in forms.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
