"""How long the HTML report takes to load in Chromium, against the same tables without plots and
scripts: 40 points and 2,000 kernel names.

    python benchmarks/page_load.py [--rounds 5] [-o RESULT.json]

Both pages are opened in turn in one browser. `load` is the time from the start of the navigation to
the end of the load event; `sight` is that of the report until the plots in sight are drawn, and
`whole` until every plot is, which a reader never waits for, since plots are drawn as they come near
the screen.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.records import Summary
from profharness.report.page.html import render
from tests.browser import CHROMIUM, Page, browser
from tests.report.samples import gpu_scan

POINTS, KERNELS = 40, 2_000
LOADED = """(() => {
  const entry = performance.getEntriesByType("navigation")[0];
  return entry.loadEventEnd - entry.startTime;
})()"""
SIGHT = "profharness.ready.then(() => performance.now())"
DRAWN = "(() => { profharness.drawAll(); return performance.now(); })()"


def sample() -> Summary:
    """A made-up scan of 40 points with the hotspots of 2,000 kernels."""
    scan = gpu_scan()
    (kernels, *others) = scan.hotspots
    rows = tuple(
        msgspec.structs.replace(
            kernels.rows[at % 7],
            name=f"void at::native::kernel_{at:04}<float, {at * 7919 % 10007}, 4>"
            f"(at::native::ReduceOp<float, at::native::MeanOps<float, {at}>, unsigned int>)",
            total_ns=10**9 - at * 1000,
            calls=1 + at * 7919 % 10007,
        )
        for at in range(KERNELS)
    )
    points = tuple(
        msgspec.structs.replace(point, point=f"{point.point}{again}", backend=point.backend + again)
        for again in ("", "-again")
        for point in scan.points
    )[:POINTS]
    hot = (msgspec.structs.replace(kernels, rows=rows), *others)
    return msgspec.structs.replace(scan, points=points, hotspots=hot)


def without_scripts(page: str) -> str:
    """The same HTML with its tables, no script, no plot, no later rows of long tables."""
    bare = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    return re.sub(r"<figure.*?</figure>", "", bare, flags=re.DOTALL)


def opened(page: Page, path: Path, *, report: bool) -> tuple[float, ...]:
    """Milliseconds until the page has loaded; of a report also until what is in sight is drawn,
    and until all is.
    """
    page.navigate(path.as_uri())
    sight = (page.run(SIGHT),) if report else ()
    load = page.run(LOADED)
    return (load, *sight, page.run(DRAWN)) if report else (load,)


def measured(folder: Path, rounds: int) -> dict[str, list[float]]:
    """The times of both pages in turn, after one round that warms up."""
    text = render(sample())
    report, bare = folder / "report.html", folder / "bare.html"
    report.write_text(text, encoding="utf-8")
    bare.write_text(without_scripts(text), encoding="utf-8")
    names = ("report", "sight", "whole", "bare")
    times: dict[str, list[float]] = {name: [] for name in names}
    with browser(folder) as started:
        tab = started.page()
        tab.look(1280, 900)
        for turn in range(rounds + 1):
            taken = (*opened(tab, report, report=True), *opened(tab, bare, report=False))
            if turn:
                for name, value in zip(names, taken, strict=True):
                    times[name].append(value)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("error: chromium is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        times = measured(Path(folder), asked.rounds)
    medians = {name: round(statistics.median(values), 1) for name, values in times.items()}
    ratio = medians["report"] / medians["bare"]
    result = {
        "points": POINTS,
        "kernels": KERNELS,
        "rounds": asked.rounds,
        "browser": subprocess.check_output([CHROMIUM, "--version"], text=True).strip(),
        "machine": platform.machine(),
        "page_bytes": len(render(sample()).encode()),
        "median_ms": medians,
        "ratio": round(ratio, 2),
        "ms": {name: [round(value, 1) for value in values] for name, values in times.items()},
    }
    print(json.dumps(result, indent=1))
    if asked.output:
        asked.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
