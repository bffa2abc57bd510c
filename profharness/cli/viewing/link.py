"""The address that makes the Perfetto UI fetch a trace, and what the UI is told to do with it:
which plugins to switch on, which tracks to keep in sight, which time and slice to show.

The ids of commands and the names of parameters are those that the UI calls stable
(https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from profharness.errors import UsageError

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 9001
DEFAULT_UI = "https://ui.perfetto.dev"
# per-process GPU tracks and the GPU Compute tab; off by default
_PLUGINS = "dev.perfetto.GpuByProcess,com.meta.GpuCompute"
_UNFOLDED = ("^GPU$", "^Hardware Queues$", "^Benchmark$")
_PINNED = (
    r"(^|· )(queue|stream) \S+( \(stream \S+\))?$",
    "^(steps|points)$",
    "^throughput",
    "^power$",
)
"""Names of the tracks that answer first: the GPU's queues, steps, points, throughput, power."""
_MARGIN, _LEAST_MARGIN_NS = 0.2, 10_000


def around(start_ns: int, end_ns: int) -> tuple[int, int]:
    """A time and a fifth of its length on both sides, in ns."""
    margin = max(int((end_ns - start_ns) * _MARGIN), _LEAST_MARGIN_NS)
    return max(start_ns - margin, 0), end_ns + margin


@dataclass(frozen=True)
class Spot:
    """A slice of a trace by its times in ns, and in words what it is. `ran` is when the work of a
    step ran on the devices (start and end in ns), which may be after its slice.
    """

    start_ns: int
    dur_ns: int
    words: str
    ran: tuple[int, int] | None = None

    @property
    def window(self) -> tuple[int, int]:
        """The time to show around it, in ns."""
        start, end = self.start_ns, self.start_ns + self.dur_ns
        if self.ran is not None:
            start, end = min(start, self.ran[0]), max(end, self.ran[1])
        return around(start, end)


@dataclass(frozen=True)
class Link:
    """Where the UI is, where it finds the file, and the slice that it selects; without one the
    `window` that it shows (start and end in ns), None for the whole trace.
    """

    ui: str
    port: int
    path: str
    spot: Spot | None = None
    window: tuple[int, int] | None = None

    @property
    def file_url(self) -> str:
        return f"http://{ADDRESS}:{self.port}{self.path}"

    @property
    def ui_url(self) -> str:
        """The address to open."""
        parameters = {
            "url": self.file_url,
            "enablePlugins": _PLUGINS,
            "startupCommands": quote(_startup_commands(), safe=""),
        }
        shown = self.window if self.spot is None else self.spot.window
        if shown is not None:
            parameters |= {"visStart": str(shown[0]), "visEnd": str(shown[1])}
        if self.spot is not None:
            parameters |= {"ts": str(self.spot.start_ns), "dur": str(self.spot.dur_ns)}
        told = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"{self.ui.rstrip('/')}/#!/?{told}"


def _startup_commands() -> str:
    """The UI's commands as JSON: groups are unfolded first, since only then their tracks exist."""
    unfold = [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [name]} for name in _UNFOLDED]
    pin = [{"id": "dev.perfetto.PinTracksByRegex", "args": [name]} for name in _PINNED]
    return json.dumps([*unfold, *pin], separators=(",", ":"))


def origin_of(ui: str) -> str:
    """Scheme, host and port of a UI's address. Raises UsageError for anything else than http or
    https.
    """
    parts = urlsplit(ui)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(
            f"--ui-origin: {ui!r} is not an http or https address", f"the default is {DEFAULT_UI}"
        )
    return f"{parts.scheme}://{parts.netloc}"


def can_open_browser(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a browser window can appear; on a bare terminal, Python would start a text browser in
    it.
    """
    return platform in {"darwin", "win32"} or any(
        environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )


def hints(link: Link) -> tuple[str, ...]:
    """What to know before opening the link, a sentence each."""
    at: tuple[str, ...] = ()
    if link.spot is not None:
        at = (f"it opens at {link.spot.words}",)
    elif link.window is not None:
        at = ("it opens at the window that the report judges",)
    return (
        f"open {link.ui_url}",
        *at,
        *_ways(link),
    )


def page_hints(link: Link, page_url: str) -> tuple[str, ...]:
    """The same of a page whose links open the trace."""
    return (
        f"open {page_url}",
        "its links open the trace in the Perfetto UI; Ctrl-C ends it",
        *_ways(link),
    )


def _ways(link: Link) -> tuple[str, ...]:
    """What stands between the browser and this computer."""
    host = socket.gethostname()
    return (
        f"from another machine, first: ssh -L {link.port}:{ADDRESS}:{link.port} {host}",
        (
            "Chrome asks once whether the page may reach this computer (local network access): "
            "allow it"
        ),
    )
