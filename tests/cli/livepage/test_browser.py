"""The live page in a real browser: it follows the run, obeys no name, and keeps what it shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.live.records import LiveAnswer, LivePoint, LiveRun
from profharness.analysis.records import PointSummary
from profharness.cli.livepage.server import LiveServer
from profharness.cli.livepage.state import LiveState
from profharness.report.live.page import Moment
from tests.browser import CHROMIUM, Page, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (or chrome) on the PATH"),
]
HOSTILE = "<img src=x onerror='document.title=\"obeyed\"'><script>document.title='obeyed'</script>"


def point(batch: int, rate: float) -> LivePoint:
    summary = PointSummary(
        point=f"torch-b{batch}", backend="torch", batch_size=batch, throughput=rate
    )
    return LivePoint(pass_name="bare", key=summary.point, name=HOSTILE, summary=summary)


class Run:
    """A run that the test moves on, and its server."""

    def __init__(self) -> None:
        self.points = (point(1, 10.0),)
        self.state = LiveState(self.look)
        self.server = LiveServer(self.state)

    def look(self) -> Moment:
        run = LiveRun(
            title=HOSTILE,
            state="running",
            points=self.points,
            curve=tuple(one.summary for one in self.points),
            now=HOSTILE,
            done=len(self.points),
            planned=4,
        )
        return Moment(run)


@contextmanager
def served() -> Iterator[Run]:
    run = Run()
    with run.server:
        thread = threading.Thread(
            target=run.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        try:
            yield run
        finally:
            run.server.shutdown()
            thread.join(timeout=60)


def until(page: Page, expression: str) -> None:
    """Wait until the page says so."""
    end = time.monotonic() + 60
    while not page.run(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.05)


SHOWN = "document.querySelectorAll('#curve circle').length"


def test_a_hostile_name_is_inert(tmp_path: Path) -> None:
    with served() as run, browser(tmp_path) as chromium:
        page = chromium.page()
        page.navigate(f"http://127.0.0.1:{run.server.port}{run.server.folder}")
        until(page, f"{SHOWN} === 1")
        assert page.run("document.querySelector('h1').textContent") == HOSTILE
        assert page.run("document.querySelectorAll('img, main script').length") == 0
        assert page.run("document.title") != "obeyed"
        assert all(one.startswith("http://127.0.0.1:") for one in page.requests())
        assert page.complaints() == []


def test_the_page_follows_the_run_and_keeps_what_it_shows_at_the_end(tmp_path: Path) -> None:
    with served() as run, browser(tmp_path) as chromium:
        page = chromium.page()
        page.look(1240)
        page.navigate(f"http://127.0.0.1:{run.server.port}{run.server.folder}")
        until(page, f"{SHOWN} === 1")
        run.points = (*run.points, point(2, 18.0))
        until(page, f"{SHOWN} === 2")
        assert page.run("document.title").startswith("2/4")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        page.look(400)
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), "on a telephone"
        run.state.end(LiveAnswer(answer="Best is 18 items/s."))
        assert run.state.wait_told(60)
        until(page, "document.documentElement.dataset.ended === 'yes'")
        run.server.server_close()
        assert "keeps what it shows" in page.run("document.getElementById('link').textContent")
        assert "Best is 18" in page.run("document.getElementById('opening').textContent")
        assert page.run(SHOWN) == 2
        assert page.complaints() == []


def test_a_page_whose_run_is_gone_says_so(tmp_path: Path) -> None:
    with served() as run, browser(tmp_path) as chromium:
        page = chromium.page()
        page.navigate(f"http://127.0.0.1:{run.server.port}{run.server.folder}")
        until(page, f"{SHOWN} === 1")
        run.server.shutdown()
        run.server.server_close()
        page.run("fetch = () => Promise.reject(new Error('gone')); 0")
        until(page, "!document.getElementById('link').hidden")
        assert "does not answer" in page.run("document.getElementById('link').textContent")
        assert page.run(SHOWN) == 1


def test_records_of_the_page_are_what_the_state_says() -> None:
    """The two ends of the wire agree: what the script reads are fields of `Told`."""
    run = Run()
    with run.server:
        told = msgspec.json.decode(msgspec.json.encode(run.state.told(frozenset())))
    assert set(told) == {"title", "ended", "parts"}
    assert set(told["parts"]["head"]) == {"mark", "html"}
