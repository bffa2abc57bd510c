"""Every recorded AMD file against the facts that its manifest states of it: rows, totals, spans,
names, geometry, counters.

A fact is looked up by its words. A phrase that no check knows fails, so that none is passed over.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.readers.logs import rocprof_sys_text
from profharness.trace.model import I64, Trace
from tests.conftest import shared_path

ROOT = shared_path("fixtures/rocm")
ENTRY = re.compile(
    r"^- `(?P<file>[^`]+)` .*?^  - facts: (?P<facts>.*?)(?=^- |^## |\Z)", re.MULTILINE | re.DOTALL
)
# not traces, or damaged in a way that leaves nothing: refused with a sentence
REFUSED = {
    "log.txt": "no known trace format",
    "input.txt": "no known trace format",
    "profiling_config.yaml": "no known trace format",
    "fd_laplacian_2023/results.json": "no API was traced",
    "vcopy_MI300X/timestamps.csv": "spreadsheet",
    "matmul_result.rpd.gz": "rocmProfileData",
}
# about the file's own form
NOT_READ = re.compile(
    r"\d+ columns|header \[|\d+ bytes|\d+ views|\d+ tables|schema_version|table suffix|\d+ "
    r"packets|tracks \[|\d+ lines of rocminfo|first data row|first X |phases |"
    r"process names \[|init/fini|non-matching lines|traceEvents|SQLite|\d+ tool entry|first "
    r"clock snapshot|kernel names NOT quoted|\d+ kernel_symbols|\d+ agents$|"
    r"agents used|rocm_version|hbm_bw|track_event clock ids|process\(pid,init,fini\)"
)

Check = Callable[[Trace, Path, "re.Match[str]"], bool]


def entries() -> dict[str, str]:
    """File and facts, as the manifest has them."""
    path = ROOT / "MANIFEST.md"
    return (
        {
            match["file"]: " ".join(match["facts"].split())
            for match in ENTRY.finditer(path.read_text())
        }
        if path.is_file()
        else {}
    )


@lru_cache(maxsize=4)
def read(path: Path) -> Trace:
    return readers.read(path)


def spans(trace: Trace) -> tuple[I64, I64]:
    """Starts and durations of what the file is about: kernels, else calls, ranges or copies."""
    table = next(
        (table for table in (trace.kernels, trace.api, trace.marks, trace.copies) if len(table)),
        trace.kernels,
    )
    return table.start_ns, table.dur_ns


def summed(trace: Trace) -> dict[str, tuple[int, int]]:
    """Total and calls by name, of kernels, calls, ranges and printed statistics."""
    found: dict[str, tuple[int, int]] = {
        row.name: (row.total_ns, row.calls) for row in trace.statistics
    }
    for table in (trace.marks, trace.api, trace.kernels):
        for code in np.unique(table.name):
            mine = table.dur_ns[table.name == code]
            found[trace.strings[int(code)]] = (int(mine.sum()), len(mine))
    return found


def of_name(trace: Trace, shown: str) -> tuple[int, int]:
    """Total and calls of the one name that begins so; the manifest cuts long ones."""
    start = shown.split("…", maxsplit=1)[0]
    ways = [
        figures
        for name, figures in summed(trace).items()
        if name.replace("\n", "").startswith(start)
    ]
    return max(ways, default=(-1, -1))


def rows(trace: Trace, path: Path, match: re.Match[str]) -> bool:
    tables = (trace.kernels, trace.api, trace.marks, trace.copies)
    if "_counter" in path.name or path.name in ("counter_collection.csv", "kernel_names.csv"):
        return len(trace.counters) == int(match[1])
    counted = (
        sum(len(table) for table in tables)
        or len(trace.statistics)
        or len(trace.sources[0].details)
    )
    if path.name in ("sysinfo.csv", "roofline.csv"):
        return len(trace.sources) == int(match[1])
    return counted == int(match[1])


def geometry(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    """In work-items as it is stated, in workgroups as it is read."""
    grid, group = (
        [int(number) for number in re.findall(r"\d+", re.sub(r"'[xyz]': ", "", part))]
        for part in match.groups()[:2]
    )
    kernels = trace.kernels
    counts = [-(-whole // part) for whole, part in zip(grid, group, strict=True)]
    if len(grid) == 1:  # v1 states products
        return int(kernels.workgroups[0]) == counts[0]
    read_counts = [int(getattr(kernels, f"workgroup_count_{axis}")[0]) for axis in "xyz"]
    return (
        read_counts == counts
        and [int(getattr(kernels, f"workgroup_size_{axis}")[0]) for axis in "xyz"] == group
        and int(kernels.workgroups[0]) == int(np.prod(counts))
    )


def counter_sums(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    """`NAME: n=3 sum=1` of a table of counters, and `NAME sum 1` of rocprof-compute's."""
    for name, count, total in re.findall(r"(\w+): n=(\d+) sum=([\d.e+]+)", match.string) or [
        (*match.group(1, 1), match[2])
    ]:
        values = trace.counters.value[trace.counters.name == trace.strings.find(name)]
        if (count != name and len(values) != int(count)) or float(values.sum()) != pytest.approx(
            float(total), rel=1e-5
        ):
            return False
    return True


def slices(trace: Trace) -> dict[str, tuple[int, int]]:
    found = (
        {"kernel_dispatch": (len(trace.kernels), int(trace.kernels.dur_ns.sum()))}
        if len(trace.kernels)
        else {}
    )
    for domain in np.unique(trace.api.domain):
        mine = trace.api.domain == domain
        found[f"{trace.strings[int(domain)]}_api"] = (
            int(mine.sum()),
            int(trace.api.dur_ns[mine].sum()),
        )
    return found


def sections(trace: Trace) -> dict[str, int]:
    """X events of rocprof's JSON by its process ids, of which 6 is the first GPU."""
    return {
        "0": len(trace.marks),
        "1": len(trace.copies),
        "2": len(trace.api),
        str(6 + int(trace.devices[0].index)): len(trace.kernels),
    }


def all_ns(trace: Trace) -> int:
    """What rocprof's JSON states durations of: not of ranges."""
    return sum(int(table.dur_ns.sum()) for table in (trace.kernels, trace.copies, trace.api))


def in_time(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    """Calls and submissions end with a line of the log; those that it shows only the return of may
    begin before.
    """
    ends = np.concatenate(
        [(table.start_ns + table.dur_ns)[table.source == 0] for table in (trace.api, trace.marks)]
    )
    return bool(((ends >= int(match[1]) * 1000) & (ends <= int(match[2]) * 1000)).all())


def miopen_all(trace: Trace, path: Path, match: re.Match[str]) -> bool:
    told = sum(
        int(count) for name, count in trace.sources[0].details if name.startswith("lines of level ")
    )
    return told + sum(
        problem.count for problem in trace.problems if "text of the program" in problem.message
    ) == int(match[1])


def spanned(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    first, last = int(match[1]), int(match[2])
    return covered(trace) == (first, last) and (match[3] is None or int(match[3]) == last - first)


def tables(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    held = {
        "HIP": len(trace.api),
        "OPS": len(trace.kernels),
        "COPY": len(trace.copies),
        "rocTX": len(trace.marks),
    }
    stated = {name: int(count) for name, count in re.findall(r"(\w+):(\d+)", match[1])}
    kernels = stated.pop("KERN", 0)
    stated.pop("A", None)  # arguments
    return all(held[name] == count for name, count in stated.items()) and (
        not kernels or len(trace.kernels) == kernels
    )


def system(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    device, value = trace.devices[0], match[2]
    return {
        "gpu_model": device.name,
        "gpu_arch": device.architecture,
        "cu_per_gpu": str(device.compute_units),
        "num_xcd": str(device.dies),
    }[match[1]] == value


def log_lines(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    other = sum(
        problem.count for problem in trace.problems if "text of the program" in problem.message
    )
    return trace.problems[0].count == int(match[2]) and other == int(match[1]) - int(match[2])


def miopen_lines(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    told = {
        name.removeprefix("lines of level "): int(count)
        for name, count in trace.sources[0].details
        if name.startswith("lines of level ")
    }
    return sum(told.values()) == int(match[1])


def miopen_levels(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    if trace.sources[0].format == "amd-log":
        return sum(ast.literal_eval(match[1]).values()) == trace.problems[0].count
    return ast.literal_eval(match[1]) == {
        name.removeprefix("lines of level "): int(count) for name, count in trace.sources[0].details
    }


def launches(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    said = " ".join(trace.strings.decode(trace.marks.name)) + " ".join(
        trace.strings.decode(trace.kernels.name)
    )
    return all(name.split("…")[0] in said for name in ast.literal_eval(match[1]))


def dispatched(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    said = [
        name.rsplit(": ", 1)[1]
        for name in trace.strings.decode(trace.marks.name)
        if " workgroups of " in name
    ]
    wanted = []
    for grid, group in ast.literal_eval(match[1]):
        whole, part = ([int(number) for number in text.split(", ")] for text in (grid, group))
        wanted.append(
            " x ".join(str(-(-a // b)) for a, b in zip(whole, part, strict=True))
            + " workgroups of "
            + " x ".join(map(str, part))
        )
    return said == wanted


def wall_clock(_: Trace, path: Path, match: re.Match[str]) -> bool:
    found, unreadable = rocprof_sys_text.parse_rows(path.read_text().splitlines())
    return (len(found), unreadable) == (int(match[1]), 0)


def deepest(_: Trace, path: Path, match: re.Match[str]) -> bool:
    return max(
        row.depth for row in rocprof_sys_text.parse_rows(path.read_text().splitlines())[0]
    ) == int(match[1])


def marketing(trace: Trace, _: Path, match: re.Match[str]) -> bool:
    """GPUs of a node; CPUs and the second name of an APU are no devices."""
    named = Counter(device.name for device in trace.devices)
    stated = ast.literal_eval(match[1])
    return all(stated[name] == count for name, count in named.items()) and bool(named)


CHECKS: tuple[tuple[str, Check], ...] = (
    (r"^(\d+) (?:dispatch )?rows$", rows),
    (r"^(\d+) dispatches", lambda trace, path, match: len(trace.kernels) == int(match[1])),
    (
        r"^(\d+) (?:kernel )?names\b",
        lambda trace, path, match: (
            len(
                set(np.unique(trace.kernels.name).tolist())
                or {row.name for row in trace.statistics}
            )
            == int(match[1])
        ),
    ),
    (r"^(\d+) functions$", lambda trace, path, match: len(summed(trace)) == int(match[1])),
    (
        r"^(\d+) counters$",
        lambda trace, path, match: len(np.unique(trace.counters.name)) == int(match[1]),
    ),
    (
        r"^(\d+) regions$",
        lambda trace, path, match: len(trace.api) + len(trace.marks) == int(match[1]),
    ),
    (r"^hip_api (\d+)$", lambda trace, path, match: len(trace.api) == int(match[1])),
    (r"^streams (\d+)$", lambda trace, path, match: len(trace.streams) == int(match[1])),
    (r"^pid (\d+)$", lambda trace, path, match: trace.sources[0].pid == int(match[1])),
    (
        r"^(?:sum|sum of durations|total|sum DurationNs|KERN sum DurationNs) (\d+)(?: ns)?$",
        lambda trace, path, match: int(match[1]) in (int(spans(trace)[1].sum()), all_ns(trace)),
    ),
    (r"^(\d+) lines$", miopen_all),
    (r"^span (\d+)\.\.(\d+)(?: \((\d+) ns\))?$", spanned),
    (
        r"^BeginNs min (\d+)$",
        lambda trace, path, match: int(spans(trace)[0].min()) == int(match[1]),
    ),
    (
        r"^top (?:kernel )?'?(.+?)'? (\d+) ns / (\d+) calls$",
        lambda trace, path, match: of_name(trace, match[1]) == (int(match[2]), int(match[3])),
    ),
    (
        r"^top (?:kernel )?'(.+?)'? (\d+)(?: ns)?$",
        lambda trace, path, match: of_name(trace, match[1])[0] == int(match[2]),
    ),
    (
        r"^first row '(.+?)' (\d+) ns",
        lambda trace, path, match: of_name(trace, match[1])[0] == int(match[2]),
    ),
    (
        r"^first '(.+)'$",
        lambda trace, path, match: of_name(trace, match[1].replace("\\n", ""))[1] >= 1,
    ),
    (r"^first (?:row|dispatch) (?:grid|grd) (.+) (?:wg|wgr) (\{.+?\}|\(.+?\)|[\d,]+)", geometry),
    (
        r"^total calls (\d+)$",
        lambda trace, path, match: sum(row.calls for row in trace.statistics) == int(match[1]),
    ),
    (
        r"^TotalDurationNs sum (\d+)$",
        lambda trace, path, match: sum(row.total_ns for row in trace.statistics) == int(match[1]),
    ),
    (
        r"^domains (\[.*\])$",
        lambda trace, path, match: (
            {name.split("_")[0].lower() for name in ast.literal_eval(match[1])}
            == (set(trace.strings.decode(trace.api.domain)) or {"marker"})
        ),
    ),
    (r"^\w+: n=\d+ sum=", counter_sums),
    (r"^(\w+) sum ([\d.e+]+)$", counter_sums),
    (
        r"^slices by category (\{.*\})$",
        lambda trace, path, match: (
            ast.literal_eval(match[1])
            == {name: count for name, (count, _) in slices(trace).items()}
        ),
    ),
    (
        r"^ns by category (\{.*\})$",
        lambda trace, path, match: (
            ast.literal_eval(match[1])
            == {name: total for name, (_, total) in slices(trace).items()}
        ),
    ),
    (
        r"^X events by pid (\{.*\})$",
        lambda trace, path, match: (
            ast.literal_eval(match[1])
            == {name: count for name, count in sections(trace).items() if count}
        ),
    ),
    (r"^tables (.*)$", tables),
    (r"^(gpu_model|gpu_arch|cu_per_gpu|num_xcd)=(.+)$", system),
    (
        r"^GPUs \[\('(\w+)', '([^']+)', \d+\)\]$",
        lambda trace, path, match: (
            (trace.devices[0].architecture, trace.devices[0].name) == (match[1], match[2])
        ),
    ),
    (r"^(\d+) lines, (\d+) match the grammar$", log_lines),
    (r"^(\d+) MIOpen lines$", miopen_lines),
    (r"^levels (\{.*\})$", miopen_levels),
    (r"^time (\d+)\.\.(\d+) us$", in_time),
    (r"^ShaderName (\[.*\])$", launches),
    (r"^dispatches \(grid\|wg\) (\[.*\])$", dispatched),
    (r"^(\d+) data rows$", wall_clock),
    (r"^max DEPTH (\d+)$", deepest),
    (r"^marketing names (\{.*\})$", marketing),
    (r"^\d+ agents \((\d+) GPU\)$", lambda trace, path, match: len(trace.devices) == int(match[1])),
    (
        (
            r"^first GPU: (\w+), '([^']+)', Cu_Count (\d+), Num_Xcc (\d+), Simd_Count \d+, "
            r"Lds_Size_In_Kb \d+, Max_Engine_Clk_Fcompute (\d+)$"
        ),
        lambda trace, path, match: (
            (
                trace.devices[0].architecture,
                trace.devices[0].name,
                trace.devices[0].compute_units,
                trace.devices[0].dies,
                trace.devices[0].max_clock_mhz,
            )
            == (match[1], match[2], int(match[3]), int(match[4]), int(match[5]))
        ),
    ),
)


def covered(trace: Trace) -> tuple[int, int]:
    """First start and last end of kernels; in a Perfetto trace, of host calls too."""
    tables = (
        [trace.kernels, trace.api] if trace.sources[0].format == "perfetto" else [trace.kernels]
    )
    starts, ends = (
        np.concatenate(parts)
        for parts in (
            [table.start_ns for table in tables],
            [table.start_ns + table.dur_ns for table in tables],
        )
    )
    return int(starts.min()), int(ends.max())


def phrases(facts: str) -> list[str]:
    """The facts one by one; some are divided by commas only."""
    found = [phrase.strip() for phrase in facts.split(";")]
    return [
        part
        for phrase in found
        for part in (
            re.split(r", (?=\d+ names|sum \d|span \d)", phrase)
            if re.match(r"\d+ dispatches,", phrase)
            else [phrase]
        )
        if part
    ]


@pytest.mark.parametrize("file", sorted(entries()))
def test_its_facts_hold_exactly(file: str) -> None:
    facts, path = entries()[file], ROOT / file
    refused = next((why for name, why in REFUSED.items() if file.endswith(name)), "")
    if refused:
        with pytest.raises(InputError, match=refused):
            readers.read(path)
        return
    trace = read(path)
    wrong, unknown, held = [], [], 0
    for phrase in phrases(facts):
        found = [
            (check, match) for pattern, check in CHECKS if (match := re.search(pattern, phrase))
        ]
        if found:
            check, match = found[0]
            held += 1
            if not check(trace, path, match):
                wrong.append(phrase)
        elif not NOT_READ.search(phrase):
            unknown.append(phrase)
    assert (wrong, unknown) == ([], [])
    assert held


def test_every_recorded_file_is_in_the_manifest(shared: Path) -> None:
    folder = shared / "fixtures/rocm"
    assert sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name != "MANIFEST.md"
    ) == sorted(entries())
    assert len(entries()) == 94
