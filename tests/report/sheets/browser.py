"""A page in a real browser without a screen: what it looks like after its script has run, and what
it complained of.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def dom_of(page: Path, folder: Path, probe: str = "") -> str:
    """The page as a browser of its own has it once what is in sight is drawn and `probe` has run.
    It loads nothing but itself, and the console is silent.
    """
    with browser(folder) as started:
        tab = started.page()
        tab.open(page.resolve().as_uri())
        if probe:
            tab.run(probe)
        assert tab.complaints() == []
        assert tab.requests() == []
        dom = tab.run("document.documentElement.outerHTML")
    assert isinstance(dom, str)
    return dom


def data_of(dom: str) -> dict[str, str]:
    """The data attributes of the root element."""
    root = re.search(r"<html[^>]*>", dom)
    assert root is not None
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'data-([a-z-]+)="([^"]*)"', root[0])
    }
