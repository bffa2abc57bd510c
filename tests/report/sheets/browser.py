"""A page in a real browser without a screen: what it looks like after its script has run, and what
it complained of.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, dumped_dom

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def dom_of(page: Path, folder: Path, probe: str = "") -> str:
    """The page as the browser has it in the end, after `probe` ran in it, which the page's policy
    is made to allow. It loads nothing but itself.
    """
    text = page.read_text()
    if probe:
        allowed = b64encode(sha256(probe.encode()).digest()).decode()
        text = text.replace("script-src '", f"script-src 'sha256-{allowed}' '", 1)
        text = text.replace("</body>", f"<script>{probe}</script></body>")
    shown = folder / "shown.html"
    shown.write_text(text)
    return dumped_dom(f"file://{shown}", folder / "profile", budget_ms=5000, timeout_s=120)


def data_of(dom: str) -> dict[str, str]:
    """The data attributes of the root element."""
    root = re.search(r"<html[^>]*>", dom)
    assert root is not None
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'data-([a-z-]+)="([^"]*)"', root[0])
    }
