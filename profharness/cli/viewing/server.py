"""A loopback server for one trace, from which the Perfetto UI fetches it.

The UI's content policy lets it fetch from any https address and from exactly http://127.0.0.1:9001,
so the port matters. The server answers for one file below a random path, allows one origin, answers
to no other host name than this computer's own, and stops after the first complete download. Beside
the file there may be a page with links that open it. On a node that many use, whoever else knocks
at the port learns nothing and stands in nobody's way.
"""

from __future__ import annotations

import hmac
import os
import shutil
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from profharness.cli.viewing.guarded import ASKS_WITHIN_S, GuardedServer, knows_us
from profharness.cli.viewing.link import ADDRESS, DEFAULT_PORT
from profharness.cli.viewing.linked import PAGE, Answer, LinkedPage
from profharness.errors import InputError, Unavailable
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.paths import MANIFEST, RunDir

_MIME = "application/octet-stream"
_TAKES_WITHIN_S = 60.0  # for each piece of the file


def file_to_view(target: Path) -> Path:
    """The trace of a run directory, or the file itself.

    Raises InputError when there is nothing to show, with how to make it.
    """
    if target.is_dir():
        if not (target / MANIFEST).is_file():
            raise InputError(
                f"{target} is not a run directory (no {MANIFEST})", "name a run or a trace file"
            )
        merged = RunDir(target).merged
        if not merged.is_file():
            raise InputError(
                f"{target} has no {merged.name} yet", f"make it with `profharness merge {target}`"
            )
        return Inside(target).require(merged)
    if not target.is_file():
        raise InputError(
            f"{target}: there is no such file or run directory", "`profharness ls` lists runs"
        )
    if not target.stat().st_size:
        raise InputError(f"{target} is empty", "its writer was interrupted: make it again")
    return target


class TraceServer(GuardedServer):
    """Serves one file under `url_path`, which nobody can guess, to one origin. `serve_forever` ends
    after a complete download unless `keep`.

    Raises Unavailable when the port is taken.
    """

    def __init__(
        self,
        path: Path,
        port: int,
        origin: str,
        *,
        keep: bool = False,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path = path
        self.origin = origin
        self.keep = keep
        self.log = log
        self.downloads = 0
        self.page: LinkedPage | None = None
        try:
            super().__init__(port, _Handler)
        except OSError as error:
            raise Unavailable(
                f"port {port} on {ADDRESS} cannot be used ({error.strerror})",
                "another viewer or trace processor may hold it: stop it. "
                f"The UI fetches from port {DEFAULT_PORT} only; "
                "with a UI of your own, choose another by --port",
            ) from error
        self.url_path = self.folder + quote(os.fsencode(path.name))

    @property
    def page_url(self) -> str:
        """Where the page is, once there is one."""
        return f"http://{ADDRESS}:{self.port}{self.folder}{PAGE}"

    def downloaded(self) -> None:
        """Count a complete download; the first one ends the server unless it is to be kept."""
        self.downloads += 1
        self.log(f"{self.path.name} was fetched")
        if not self.keep:
            threading.Thread(
                target=self.shutdown
            ).start()  # shutdown waits for the loop that runs this handler


class _Handler(BaseHTTPRequestHandler):
    server: TraceServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "profharness", ""
    timeout = ASKS_WITHIN_S  # a client that says nothing must not hold its thread for ever

    def do_OPTIONS(self) -> None:
        """Preflight, also that of Chrome's private network access."""
        self._head(self._refused() or HTTPStatus.NO_CONTENT, 0)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        """The page or where a link of it leads, by the exact path; else the file, or why not."""
        answer = self._of_the_page()
        if answer is None:
            self._file(body=body)
            return
        self.send_response(answer.status)
        for name, value in (*answer.headers, ("Connection", "close")):
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(answer.body)

    def _of_the_page(self) -> Answer | None:
        """The answer to who opens the page or follows a link of it; None for all else, and for a
        script of a page, which states its origin.
        """
        name, page = self.server.name_in_folder(self.path), self.server.page
        if name is None or page is None or "Origin" in self.headers or not knows_us(self.headers):
            return None
        self.server.admit(self.connection)  # it may wait for a search in the trace
        return page.answer(name)

    def _refused(self) -> HTTPStatus | None:
        """Why this visitor gets nothing: a page of another origin, a host name that is not this
        computer's own (DNS rebinding), or a path that is not the file's.
        """
        if not knows_us(self.headers):
            return HTTPStatus.FORBIDDEN
        if self.headers.get("Origin", self.server.origin) != self.server.origin:
            return HTTPStatus.FORBIDDEN
        asked = unquote_to_bytes(self.path.partition("?")[0])
        if not hmac.compare_digest(asked, unquote_to_bytes(self.server.url_path)):
            return HTTPStatus.NOT_FOUND
        return None

    def _file(self, *, body: bool) -> None:
        if (refused := self._refused()) is not None:
            self._head(refused, 0)
            return
        self.server.admit(self.connection)
        self.connection.settimeout(_TAKES_WITHIN_S)
        try:
            file = self.server.path.open("rb")
        except OSError:
            self._head(HTTPStatus.GONE, 0)
            return
        with file:
            size = file.seek(0, 2)
            file.seek(0)
            self._head(HTTPStatus.OK, size)
            if not body:
                return
            try:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
                self.wfile.flush()
            except OSError:  # the client went away; it may come again
                self.close_connection = True
                return
        self.close_connection = True
        self.server.downloaded()

    def _head(self, status: HTTPStatus, size: int) -> None:
        self.send_response(status)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", _MIME)
            self.send_header("Content-Length", str(size))
        self.send_header("Access-Control-Allow-Origin", self.server.origin)
        self.send_header("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
        self.send_header("Access-Control-Allow-Headers", "*")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.send_header("Vary", "Origin")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()

    # the signature of http.server
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's
        """Requests are no news; downloads are told by the server."""
