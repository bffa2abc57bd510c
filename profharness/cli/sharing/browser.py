"""A page in the user's browser, where there is one."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from profharness.cli.viewing.link import can_open_browser
from profharness.rundir.shown.screen import mention


def open_page(path: Path) -> None:
    """Open a page in the browser; where no window can appear, or none does, say where the page
    lies. Never raises.
    """
    page = path.absolute()
    try:
        opened = can_open_browser(os.environ, sys.platform) and webbrowser.open(page.as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        mention(f"profharness: no browser opens here; the page is {page}")
