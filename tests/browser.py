"""A real Chromium, steered by its DevTools protocol over a pair of pipes: what a page prints on the
console, what it asks the network for, how wide it is.

https://chromedevtools.github.io/devtools-protocol/; with `--remote-debugging-pipe` each message is
JSON that ends with a zero byte, to the browser by descriptor 3 and back by 4.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
WITHIN_S = 60.0
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """The process, its two pipes, and the events that nobody has asked for yet."""

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # 3 and 4 in the browser: moved out of each other's way first
        ends = [os.dup(end) for end in (theirs_in, theirs_out)]
        script = f'exec 3<&{ends[0]} 4>&{ends[1]}; exec "$@"'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", script, "-", BROWSER, *SWITCHES),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
            ],
            pass_fds=ends,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """The answer to a command; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                found: dict[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Until that event came, which may have been before."""
        self.events_until(
            lambda one: one.get("method") == method and one.get("sessionId") == session
        )

    def events_until(self, is_last: Callable[[dict[str, Any]], bool]) -> None:
        """Take up events until one of them is the last that is wanted."""
        while not any(map(is_last, self.events)):
            self.events.append(self._next())

    def end(self) -> None:
        """Close the browser, by force where it does not go."""
        os.close(self._out)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + WITHIN_S
        while b"\0" not in self._buffer:
            ready = select.select([self._in], [], [], max(until - time.monotonic(), 0))[0]
            assert ready, f"the browser said nothing for {WITHIN_S:.0f} s"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


class Page:
    """One tab, and what its page did so far."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.ask("Target.attachToTarget", targetId=self._target, flatten=True)
        self.session: str = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def look(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """A screen of that size, and the colours that its user prefers."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        """Load the page; it has loaded on return, and its scripts have run."""
        self.browser.events.clear()
        self._ask("Page.navigate", url=address)
        self.browser.wait_for("Page.loadEventFired", self.session)

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page; of a promise what it comes to."""
        result = self._ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait, frame by frame, for an expression to hold."""
        self.value(
            "new Promise((done, failed) => { const end = Date.now() + 40000; (function look() {"
            f"if ({expression}) done(true);"
            "else if (Date.now() > end) failed('it never held');"
            "else setTimeout(look, 20); })(); })"
        )

    def close(self) -> None:
        """Close the tab."""
        self.browser.ask("Target.closeTarget", targetId=self._target)

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and exceptions, since it was opened."""
        found = []
        for kind, params in self._events():
            if kind == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str([one.get("value") for one in params["args"]]))
            elif kind == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(str(params["entry"]["text"]))
        return found

    def requests(self) -> list[str]:
        """The addresses that it asked the network for, its own and data in itself left out."""
        asked = [
            str(params["request"]["url"])
            for kind, params in self._events()
            if kind == "Network.requestWillBeSent" and params.get("type") != "Document"
        ]
        return [one for one in asked if not one.startswith(("data:", "blob:"))]

    def _events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for event in self.browser.events:
            if event.get("sessionId") == self.session:
                yield event["method"], event["params"]

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **params)


@contextmanager
def opened_browser(profile: Path) -> Iterator[Browser]:
    """A browser with its own profile folder, ended on leaving."""
    browser = Browser(profile)
    try:
        yield browser
    finally:
        browser.end()
