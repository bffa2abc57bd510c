"""A real Chromium, spoken to by its DevTools protocol over two pipes: pages at any width, clicks,
and what a page logged, loaded and threw.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

PATIENCE = 60.0
"""Seconds without a word of the browser, after which it counts as dead."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
ALONE = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""The browser asks for nothing of its own, and runs where there is no screen."""
ARGUMENTS = ("--headless=new", *ALONE, "--hide-scrollbars", "--remote-debugging-pipe")


def dumped_dom(address: str, profile: Path, *, budget_ms: int, timeout_s: float) -> str:
    """The page as a browser of its own has it once so many milliseconds of its own time are over;
    it ends with that.
    """
    assert CHROMIUM is not None
    argv = [
        CHROMIUM,
        "--headless",
        *ALONE,
        f"--user-data-dir={profile}",
        f"--virtual-time-budget={budget_ms}",
        "--dump-dom",
        address,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=True)
    assert "<html" in done.stdout, done.stderr[-2000:]
    return done.stdout


class Page:
    """One tab. `events` are those that the protocol reported since the last `open`."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        return self.browser.call(method, params, self)

    def open(self, address: str) -> None:
        """Open the page and wait until it has loaded and, where it is a report, until what is in
        sight is drawn.
        """
        self.navigate(address)
        self.run("window.profharness && profharness.ready")

    def navigate(self, address: str) -> None:
        """Open the page and wait until it has loaded."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def wait_for(self, method: str, *, seconds: float = 60, **params: object) -> dict[str, Any]:
        """The first event of this name with these parameters since the last `open`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for event in self.events:
                if event["method"] == method and params.items() <= event["params"].items():
                    return event
            self.browser.read()
        raise TimeoutError(f"no {method} within {seconds} s")

    def run(self, expression: str) -> Any:
        """The value of an expression (or what its promise resolves to) in the page."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def look(self, width: int, height: int = 1000, *, dark: bool = False, media: str = "") -> None:
        """The size of the screen, its scheme, and `print` as medium."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def picture(self, path: Path, *, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """What went wrong in the page: errors and warnings of its console, exceptions."""
        self.run("0")  # what was reported before arrives before the answer
        found = []
        for event in self.events:
            told, params = event["method"], event["params"]
            if told == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                thrown = details.get("exception", {}).get("description", "")
                found.append(f"{details['text']} {thrown}"[:500])
            elif told == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}:
                found.append(" ".join(str(one.get("value", "")) for one in params["args"]))
            elif told == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
                found.append(params["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for, itself aside."""
        self.run("0")
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [one for one in asked[1:] if not one.startswith(("data:", "blob:"))]


class Browser:
    """The process and its pipes."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out)]

        def as_agreed() -> None:
            """The browser reads commands from descriptor 3 and answers at 4."""
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, *ARGUMENTS, f"--user-data-dir={profile}"],
            preexec_fn=as_agreed,  # noqa: PLW1509  two calls of the system and nothing else
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in high:
            os.close(fd)
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._number = b"", 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close", {})
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._in)
        os.close(self._out)

    def page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page.__new__(Page)
        self._pages[session["sessionId"]] = page
        page.__init__(self, session["sessionId"])  # type: ignore[misc]
        return page

    def call(
        self, method: str, params: dict[str, object], page: Page | None = None
    ) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if page is not None:
            message["sessionId"] = page.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while number not in self._answers:
            self.read()
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result", {})

    def read(self) -> None:
        """Take in what has come, waiting for something to come."""
        if not select.select([self._in], [], [], PATIENCE)[0]:
            raise TimeoutError(f"the browser says nothing for {PATIENCE} s")
        got = os.read(self._in, 1 << 20)
        if not got:
            raise OSError("the browser has ended")
        *whole, self._buffer = (self._buffer + got).split(b"\0")
        for part in whole:
            message = json.loads(part)
            if "id" in message:
                self._answers[message["id"]] = message
            elif (page := self._pages.get(message.get("sessionId", ""))) is not None:
                page.events.append(message)


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser of its own, closed at the end."""
    with Browser(folder / "profile") as started:
        yield started
