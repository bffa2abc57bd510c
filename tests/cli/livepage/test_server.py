"""Who gets the page of a run, and who nothing: loopback, a path that nobody can guess, this
computer's own name, no script of another page.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from profharness.analysis.live.records import LiveRun
from profharness.cli.livepage.server import STATE, LiveServer
from profharness.cli.livepage.state import LiveState, Told
from profharness.report.live.page import Moment, page_text, policy

HOSTILE = "<script>alert(1)</script>"


@contextmanager
def served() -> Iterator[LiveServer]:
    run = LiveRun(title=HOSTILE, state="running", now=HOSTILE)
    with LiveServer(LiveState(lambda: Moment(run))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=60)


def ask(
    server: LiveServer, path: str | None = None, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=90)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, server.folder if path is None else path, headers=named)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_the_page_is_served_to_who_knows_its_address_with_its_policy() -> None:
    with served() as server:
        assert server.server_address[0] == "127.0.0.1"
        answer, body = ask(server)
        assert answer.status == 200
        assert body.decode() == page_text()
        assert answer.headers["Content-Security-Policy"] == f"{policy()}; frame-ancestors 'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers
        head, nothing = ask(server, method="HEAD")
        assert (head.status, nothing) == (200, b"")
        assert head.headers["Content-Length"] == str(len(body))


def test_the_state_is_json_whose_names_are_escaped() -> None:
    with served() as server:
        answer, body = ask(server, f"{server.folder}{STATE}?c=ab&k=none")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("application/json")
        told = msgspec.json.decode(body, type=Told)
        assert not any("<script" in part.html for part in told.parts.values())
        assert "&lt;script&gt;" in told.parts["opening"].html
        known = ".".join(part.mark for part in told.parts.values())
        again = msgspec.json.decode(
            ask(server, f"{server.folder}{STATE}?c=ab&k={known}")[1], type=Told
        )
        assert again.parts == {}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/state",
        "/../",
        "{folder}..",
        "{folder}report.html",
        "{folder}state/",
        "{folder}%73tate",
        "{shorter}",
        "/x{folder}",
        "{folder}state?" + "k" * 5000,
    ],
)
def test_any_other_path_is_not_there(path: str) -> None:
    with served() as server:
        told = path.format(folder=server.folder, shorter=server.folder[:-2])
        answer, body = ask(server, told)
        assert (answer.status, body) == (404, b"")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "localhost:1@evil.example"],
)
def test_a_page_whose_name_was_led_to_this_computer_is_refused(host: str) -> None:
    with served() as server:
        for path in (server.folder, f"{server.folder}{STATE}", "/"):
            answer, body = ask(server, path, Host=host)
            assert (answer.status, body) == (403, b"")


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "LOCALHOST"])
def test_another_port_on_the_way_is_no_matter(host: str) -> None:
    """As `ssh -L 8080:127.0.0.1:PORT` has it."""
    with served() as server:
        assert ask(server, f"{server.folder}{STATE}", Host=host, Origin=f"http://{host}")[
            0
        ].status == (200)


def test_scripts_of_other_pages_get_nothing() -> None:
    with served() as server:
        state = f"{server.folder}{STATE}"
        assert ask(server, state, Origin="https://evil.example")[0].status == 403
        assert ask(server, state, Origin="null")[0].status == 403
        for site in ("cross-site", "same-site"):
            refused, body = ask(server, state, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")
            assert (refused.status, body) == (403, b"")
        assert ask(server, state, Sec_Fetch_Site="same-origin")[0].status == 200
        led = ask(server, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
        assert led[0].status == 200, "a link in a message may lead here"


def test_nothing_can_be_sent() -> None:
    with served() as server:
        assert ask(server, method="POST")[0].status == 501
