"""Draws `docs/report.png`, the picture in the README: `make picture TRACE=FILE`.

It is the first screen of the report of a trace that was recorded on a GPU. Only the picture is part
of the repository.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from profharness.report.page.html import render
from profharness.understand.loose.summaries import summarise_paths

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "report.png"
TITLE = "stable-diffusion-3.5-on-mi300x.json.gz"
RECORDED = ROOT.parent / "shared" / "fixtures" / "kineto" / "mi300x_xdit_sd3.5.json.gz"
"""Stable Diffusion 3.5 on an AMD Instinct MI300X, recorded by torch.profiler."""
SIZE = (1200, 930)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def page_of(trace: Path, folder: Path, title: str) -> Path:
    """The report of a trace file, under a title of its own. Raises ProfharnessError where it cannot
    be read.
    """
    named = folder / title
    named.symlink_to(trace.resolve())
    page = folder / "report.html"
    page.write_text(render(summarise_paths([named], for_page=True)), encoding="utf-8")
    return page


def photograph(browser: str, page: Path, picture: Path) -> None:
    """The page's first screen as a PNG file. Raises subprocess.CalledProcessError."""
    subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={page.parent / 'profile'}",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            "--virtual-time-budget=10000",
            f"--screenshot={picture}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )


def main(arguments: Sequence[str]) -> int:
    """0 where the picture was made, 3 where trace or browser is missing."""
    parser = argparse.ArgumentParser(description="Draw the picture in the README.")
    parser.add_argument("trace", type=Path, nargs="?", default=RECORDED)
    parser.add_argument("-o", "--output", type=Path, default=PICTURE)
    given = parser.parse_args(arguments)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None or not given.trace.is_file():
        lacks = "Chromium is not installed" if browser is None else f"there is no {given.trace}"
        print(f"error: {lacks}\n  name a recorded trace: make picture TRACE=FILE", file=sys.stderr)
        return 3
    title = TITLE if given.trace == RECORDED else given.trace.name
    with tempfile.TemporaryDirectory() as folder:
        photograph(browser, page_of(given.trace, Path(folder), title), given.output.resolve())
    print(f"made {given.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
