"""gRPC over HTTP/2 by the libraries h2 and hpack, as a byte machine that takes the place of our own
(`http2.Http2`) under our socket loop.

The checks of headers that h2 can leave out are left out, so that the figures are its best.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from profharness_workloads.loadgen import http2

Headers = Sequence[tuple[str, str]]
_PREFIX = struct.Struct(">BI")
_CONFIG = h2.config.H2Configuration(
    client_side=True,
    header_encoding="utf-8",
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
    validate_inbound_headers=False,
    normalize_inbound_headers=False,
)


class H2:
    """gRPC over HTTP/2, one call at a time; the interface of `http2.Http2`."""

    def __init__(self, headers: Headers):
        self._headers = headers
        self._connection = h2.connection.H2Connection(_CONFIG)
        self._stream = -1
        self._left = memoryview(b"")
        self._answered = self._received = 0
        self._status: str | None = None
        self.error = ""
        self.reply = b""
        self.usable = True

    def opening(self) -> bytes:
        """The same settings as ours: no dynamic table, no push, windows as wide as they go."""
        codes = h2.settings.SettingCodes
        self._connection.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                codes.HEADER_TABLE_SIZE: 0,
                codes.ENABLE_PUSH: 0,
                codes.INITIAL_WINDOW_SIZE: http2.LARGEST_WINDOW,
                codes.MAX_FRAME_SIZE: http2.OUR_FRAME_SIZE,
            },
        )
        self._connection.max_inbound_frame_size = http2.OUR_FRAME_SIZE
        self._connection.initiate_connection()
        self._connection.increment_flow_control_window(http2.LARGEST_WINDOW - 65535)
        return bytes(self._connection.data_to_send())

    def begin(self, head: bytes, payload: bytes) -> bytes:
        """Bytes of a call, as far as the server's window lets them go now."""
        self._stream = self._connection.get_next_available_stream_id()
        self._status, self._answered, self.error = None, 0, ""
        self._connection.send_headers(self._stream, self._headers)
        prefix = _PREFIX.pack(0, len(head) + len(payload))
        self._left = memoryview(b"".join((prefix, head, payload)))
        return self.more()

    def more(self) -> bytes:
        """Further bytes of the message that the windows allow by now."""
        connection = self._connection
        while self._left:
            room = connection.local_flow_control_window(self._stream)
            room = min(room, connection.max_outbound_frame_size)
            if room <= 0:
                break
            piece, self._left = self._left[:room], self._left[room:]
            connection.send_data(self._stream, bytes(piece), end_stream=not self._left)
        return bytes(connection.data_to_send())

    def feed(self, data: bytes) -> bool:
        """Take received bytes; True when the call is over. Raises http2.BadAnswer."""
        over = False
        try:
            for event in self._connection.receive_data(data):
                over = self._event(event) or over
        except h2.exceptions.ProtocolError as error:
            raise http2.BadAnswer(str(error)) from error
        self.reply += self.more()
        return over

    def _event(self, event: h2.events.Event) -> bool:
        if isinstance(event, h2.events.DataReceived):
            self._received += event.flow_controlled_length
            if self._received > http2.LARGEST_WINDOW // 2:
                self._connection.increment_flow_control_window(self._received)
                self._received = 0
            self._answered += len(event.data)
        elif isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
            self._take(dict(event.headers))
        elif isinstance(event, h2.events.StreamEnded):
            self._judge()
            return True
        elif isinstance(event, h2.events.StreamReset):
            self.error = f"the server reset the call (HTTP/2 error {event.error_code})"
            self._left = memoryview(b"")
            return True
        elif isinstance(event, h2.events.ConnectionTerminated):
            raise http2.BadAnswer("the server closes the connection")
        return False

    def _take(self, headers: Mapping[str, str]) -> None:
        if headers.get(":status", "200") != "200":
            self.error = f"HTTP status {headers[':status']}"
        if "grpc-status" in headers:
            self._status = headers["grpc-status"]
            if self._status != "0":
                self.error = f"gRPC status {self._status}: {headers.get('grpc-message', '')}"

    def _judge(self) -> None:
        if self._status is None and not self.error:
            self.error = "the answer has no gRPC status"
        elif not self._answered and not self.error:
            self.error = "the answer holds no message"
