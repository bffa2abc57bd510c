"""`view` before a real browser: the page of the allowed origin gets the file, a page of a third one
gets nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from profharness.cli.viewing.link import Link, Spot
from profharness.cli.viewing.server import TraceServer
from profharness.readers import read
from profharness.writers.perfetto import write
from tests.browser import dumped_dom
from tests.report.sheets.browser import data_of, needs_browser
from tests.writers.rich.kineto_file import write_kineto

pytestmark = [pytest.mark.slow, needs_browser]
# does with the address what the UI does: it fetches `url` of the part behind the #
STAND_IN = b"""<!doctype html><html><head><meta charset="utf-8"></head><body><script>
const told = new URLSearchParams(location.hash.replace("#!/?", ""));
const root = document.documentElement.dataset;
root.ts = told.get("ts");
root.commands = JSON.parse(told.get("startupCommands")).length;
fetch(told.get("url")).then(answer => answer.arrayBuffer()).then(async bytes => {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  root.got = Array.from(hash, one => one.toString(16).padStart(2, "0")).join("");
}).catch(error => { root.got = "nothing"; });
</script></body></html>"""


class _StandIn(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(STAND_IN)))
        self.end_headers()
        self.wfile.write(STAND_IN)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's
        pass


@contextmanager
def origin() -> Iterator[str]:
    """The address of a page server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _StandIn) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(timeout=60)


def opened(url: str, folder: Path) -> dict[str, str]:
    """What the page at this address found, as attributes of its root element."""
    return data_of(dumped_dom(url, folder, budget_ms=20_000, timeout_s=280))


def test_the_allowed_page_gets_the_file_and_a_third_origin_gets_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "m.pftrace"
    write(read(write_kineto(tmp_path / "t.json")), trace)
    with origin() as ui, origin() as third, TraceServer(trace, 0, ui) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            spot = Spot(1_000, 10, "step 3")
            stranger = Link(third, server.port, server.url_path, spot)
            assert opened(stranger.ui_url, tmp_path / "a")["got"] == "nothing"
            assert server.downloads == 0
            assert thread.is_alive()
            friend = Link(ui, server.port, server.url_path, spot)
            seen = opened(friend.ui_url, tmp_path / "b")
            thread.join(timeout=60)
            assert not thread.is_alive()
        finally:
            server.shutdown()
    assert seen["got"] == sha256(trace.read_bytes()).hexdigest()
    assert seen["ts"] == "1000"
    assert int(seen["commands"]) > 3
