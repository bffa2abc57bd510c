"""What the stand-ins for somebody's own model server share: plain HTTP, any GET says that they are
ready, a POST asks the model.
"""

from __future__ import annotations

import http.server
from collections.abc import Callable


def serve(port: int, infer: Callable[[], str]) -> None:
    """Until Ctrl-C; a thread per connection."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer(b"ready")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(infer().encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    try:
        http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
    except KeyboardInterrupt:
        return
