"""A page in a real browser without a screen: what it looks like after its script has run, and what
it complained of.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


def dom_of(page: Path, folder: Path, probe: str = "") -> str:
    """The page as the browser has it in the end, after `probe` ran in it, which the page's policy
    is made to allow. It loads nothing but itself.
    """
    assert BROWSER is not None
    text = page.read_text()
    if probe:
        allowed = b64encode(sha256(probe.encode()).digest()).decode()
        text = text.replace("script-src '", f"script-src 'sha256-{allowed}' '", 1)
        text = text.replace("</body>", f"<script>{probe}</script></body>")
    shown = folder / "shown.html"
    shown.write_text(text)
    argv = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=5000",
        "--dump-dom",
        f"file://{shown}",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def data_of(dom: str) -> dict[str, str]:
    """The data attributes of the root element."""
    root = re.search(r"<html[^>]*>", dom)
    assert root is not None
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'data-([a-z-]+)="([^"]*)"', root[0])
    }
