"""The server of a live page: the page, and its state. It answers on loopback alone, below a path
that nobody can guess, to no other host name than this computer's own, and to no script of another
page.
"""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import msgspec

from profharness.cli.livepage.state import LiveState
from profharness.cli.viewing.guarded import ASKS_WITHIN_S, GuardedServer, knows_us
from profharness.report.live.page import page_text, policy

STATE = "state"
_HTML, _JSON, _TEXT = "text/html", "application/json", "text/plain"
_MOST_QUERY = 2_000


class LiveServer(GuardedServer):
    """Serves one run's page at `folder`, on a port that is free. Raises OSError where there is
    none.
    """

    def __init__(self, state: LiveState) -> None:
        self.state = state
        super().__init__(0, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "profharness", ""
    timeout = ASKS_WITHIN_S  # a client that says nothing must not hold its thread for ever

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        if self._is_foreign():
            self._send(HTTPStatus.FORBIDDEN, b"", _TEXT, body=body)
            return
        path, _, query = self.path.partition("?")
        name = self.server.name_in_folder(path)
        if name == "":
            self._send(HTTPStatus.OK, page_text().encode(), _HTML, body=body)
        elif name == STATE and len(query) <= _MOST_QUERY:
            self._state(query, body=body)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"", _TEXT, body=body)

    def _state(self, query: str, *, body: bool) -> None:
        asked = parse_qs(query, max_num_fields=4)
        page = asked.get("c", [""])[0]
        known = frozenset(asked.get("k", [""])[0].split("."))
        told = self.server.state.told(known)
        self._send(HTTPStatus.OK, msgspec.json.encode(told), _JSON, body=body)
        if body:
            self.wfile.flush()
            self.server.state.heard(page, told)

    def _is_foreign(self) -> bool:
        """Whether somebody else's page asks, or asks for another computer than this one."""
        if not knows_us(self.headers):
            return True
        own = f"http://{self.headers['Host'].strip()}"
        if self.headers.get("Origin", own) != own:
            return True
        # a browser says which page asks; that a link leads here is no harm
        site = self.headers.get("Sec-Fetch-Site", "none")
        return site not in ("none", "same-origin") and (
            self.headers.get("Sec-Fetch-Mode") != "navigate"
        )

    def _send(self, status: HTTPStatus, content: bytes, mime: str, *, body: bool) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{mime}; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", f"{policy()}; frame-ancestors 'none'"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    # the signature of http.server
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's
        """Requests are no news."""
