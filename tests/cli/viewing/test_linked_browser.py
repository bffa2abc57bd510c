"""`view --report` before a real browser: a click on a live link leads to the UI at the right time,
and no other origin reads the page.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from profharness.cli.viewing.link import Link
from profharness.cli.viewing.linked import LinkedPage, page_of
from profharness.cli.viewing.server import TraceServer
from profharness.cli.viewing.spots import spots_in
from tests.browser import CHROMIUM, Browser, Page, browser
from tests.cli.viewing.test_linked import run_folder
from tests.cli.viewing.test_view_browser import origin

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (or chrome) on the PATH"),
]
BASE = 1_795_000_000_000_000_000
GOT = """new Promise(done => {
  const look = () => document.documentElement.dataset.got
    ? done({...document.documentElement.dataset}) : setTimeout(look, 20);
  look();
})"""


@contextmanager
def serving(run: Path, ui: str) -> Iterator[TraceServer]:
    trace = run / "merged.pftrace"
    with TraceServer(trace, 0, ui, keep=True) as server:
        link = Link(ui, server.port, server.url_path)
        server.page = LinkedPage(page_of(run), link, lambda names: spots_in(trace, None, names))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=60)


def tab_of(chromium: Browser, address: str, closed: set[str]) -> dict[str, Any]:
    """What the stand-in found in the tab that a click has opened at this address. The tab is closed
    and its name kept, since the browser may still list one that is closing.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for target in chromium.call("Target.getTargets", {})["targetInfos"]:
            name = target["targetId"]
            if name in closed or target["type"] != "page":
                continue
            if target["url"].startswith(address):
                params = {"targetId": name, "flatten": True}
                session = chromium.call("Target.attachToTarget", params)["sessionId"]
                found: dict[str, Any] = Page(chromium, session).run(GOT)
                closed.add(name)
                chromium.call("Target.closeTarget", {"targetId": name})
                return found
    raise TimeoutError(address)


def test_a_live_link_leads_to_the_place_in_the_ui(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    content = sha256((run / "merged.pftrace").read_bytes()).hexdigest()
    with origin() as ui, browser(tmp_path) as chromium, serving(run, ui) as server:
        page = chromium.page()
        page.open(server.page_url)
        assert page.complaints() == []
        assert page.requests() == []
        assert page.run("self.origin") == "null"
        assert page.run("document.querySelectorAll('.command button').length") == 3
        closed: set[str] = set()
        for click, ts in ((0, None), (1, str(BASE)), (0, None)):
            page.run(f"document.querySelector('a[href=\"open/{click}\"]').click()")
            seen = tab_of(chromium, f"{ui}/#!/?url=", closed)
            assert (seen["got"], seen["ts"]) == (content, str(ts).replace("None", "null"))
        assert server.downloads == 3


def test_no_other_origin_reads_page_or_trace(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    with (
        origin() as ui,
        origin() as third,
        browser(tmp_path) as chromium,
        serving(run, ui) as server,
    ):
        folder = server.url_path.rpartition("/")[0]
        page = chromium.page()
        for name in ("merged.pftrace", "report.html", "open/0"):
            for place in (third, ui):
                link = Link(place, server.port, f"{folder}/{name}")
                page.open("about:blank")
                page.open(link.ui_url)
                got = page.run(GOT)["got"]
                if place == third:
                    assert got == "nothing"
                else:  # the UI may read that it is refused, and no more
                    file = (run / name).read_bytes() if name == "merged.pftrace" else b""
                    assert got == sha256(file).hexdigest()
        assert server.downloads == 1
        page.open(server.page_url)
        reached = page.run(f"fetch('{server.url_path}').then(() => 'read', () => 'nothing')")
        assert reached == "nothing"
        assert server.downloads == 1
