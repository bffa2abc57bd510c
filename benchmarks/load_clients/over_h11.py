"""HTTP/1.1 by the library h11, as a byte machine that takes the place of our own (`http1.Http1`)
under our socket loop.

A request's head is built and checked once for each length, so that the figures are its best.
"""

from __future__ import annotations

from collections.abc import Sequence

import h11

from load_clients.call_loops import body_headers
from profharness_workloads.loadgen import http1


class H11:
    """HTTP/1.1, one request at a time; the interface of `http1.Http1`."""

    def __init__(self, path: str, headers: Sequence[tuple[str, str]]):
        self._path, self._headers = path, list(headers)
        self._connection = h11.Connection(our_role=h11.CLIENT)
        self._requests: dict[tuple[int, int], h11.Request] = {}
        self.error = ""
        self.reply = b""
        self.usable = True

    def opening(self) -> bytes:
        """Empty: HTTP/1.1 sends nothing before the first request."""
        return b""

    def begin(self, head: bytes, payload: bytes, json_length: int = -1) -> bytes:
        """Bytes of a request with body `head` + `payload`; `json_length` is the JSON part's."""
        connection = self._connection
        if connection.our_state is h11.DONE:
            connection.start_next_cycle()
        self.error = ""
        key = len(head) + len(payload), json_length
        request = self._requests.get(key)
        if request is None:
            headers = [*self._headers, *body_headers(*key)]
            request = h11.Request(method="POST", target=self._path, headers=headers)
            self._requests[key] = request
        sent = (
            connection.send(request),
            connection.send(h11.Data(data=head + payload)),
            connection.send(h11.EndOfMessage()),
        )
        return b"".join(part for part in sent if part)

    def more(self) -> bytes:
        """Empty: HTTP/1.1 has no windows of its own."""
        return b""

    def feed(self, data: bytes) -> bool:
        """Take received bytes; True when the answer is whole. Raises http1.BadAnswer."""
        connection = self._connection
        try:
            connection.receive_data(data)
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return False
                if isinstance(event, h11.Response) and event.status_code != 200:
                    self.error = f"HTTP status {event.status_code}"
                elif isinstance(event, h11.EndOfMessage):
                    self.usable = connection.our_state is h11.DONE
                    return True
        except h11.RemoteProtocolError as error:
            raise http1.BadAnswer(str(error)) from error
