"""`profharness view`: a real server and real HTTP requests, and the command as a user runs it."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from profharness.cli.viewing.link import DEFAULT_UI, Link, can_open_browser, hints, origin_of
from profharness.cli.viewing.server import TraceServer, file_to_view
from profharness.errors import InputError, Unavailable, UsageError

CONTENT = bytes(range(256)) * 9000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "merged run.pftrace"
    path.write_bytes(CONTENT)
    return path


@contextmanager
def served(path: Path, *, keep: bool = False) -> Iterator[tuple[TraceServer, threading.Thread]]:
    with TraceServer(path, 0, DEFAULT_UI, keep=keep) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server, thread
        finally:
            server.shutdown()
            thread.join(timeout=90)
            assert not thread.is_alive()


def ask(
    server: TraceServer,
    method: str,
    name: str | None = None,
    origin: str | None = DEFAULT_UI,
    host: str = "127.0.0.1:9001",
) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer to a request, for the file itself where no other name is given."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=90)
    connection.request(
        method,
        server.url_path if name is None else name,
        headers={"Host": host} | ({"Origin": origin} if origin else {}),
    )
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_one_name_is_served_to_the_one_origin(trace: Path) -> None:
    with served(trace, keep=True) as (server, _):
        response, body = ask(server, "GET")
        assert (response.status, body) == (200, CONTENT)
        assert response.headers["Access-Control-Allow-Origin"] == DEFAULT_UI
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["Content-Length"] == str(len(CONTENT))


@pytest.mark.parametrize(
    "name",
    [
        "/",
        "/other",
        "/merged%20run.pftrace",
        "/x/merged%20run.pftrace",
        "/{token}/",
        "/{token}/other",
        "/{token}/../{token}/merged%20run.pftrace",
        "{path}/",
        "/%00",
        "//127.0.0.1{path}",
    ],
)
def test_no_other_name_is_served(trace: Path, name: str) -> None:
    with served(trace) as (server, thread):
        given = name.format(token=server.url_path.split("/")[1], path=server.url_path)
        response, body = ask(server, "GET", given)
        assert (response.status, body) == (404, b"")
        assert thread.is_alive()
        assert server.downloads == 0


def test_a_foreign_page_is_refused(trace: Path) -> None:
    with served(trace) as (server, _):
        response, body = ask(server, "GET", origin="https://evil.example")
        assert (response.status, body) == (403, b"")
        assert response.headers["Access-Control-Allow-Origin"] == DEFAULT_UI
        assert server.downloads == 0


def test_preflight_and_head_are_answered_and_do_not_end_the_server(trace: Path) -> None:
    with served(trace) as (server, thread):
        response, _ = ask(server, "OPTIONS")
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Private-Network"] == "true"
        assert "GET" in response.headers["Access-Control-Allow-Methods"]
        response, body = ask(server, "HEAD")
        assert (response.status, body, response.headers["Content-Length"]) == (
            200,
            b"",
            str(len(CONTENT)),
        )
        assert thread.is_alive()


def test_the_server_ends_after_the_first_complete_download(trace: Path) -> None:
    with served(trace) as (server, thread):
        assert ask(server, "GET", origin=None)[1] == CONTENT
        thread.join(timeout=90)
        assert not thread.is_alive()
        assert server.downloads == 1


def test_a_client_that_goes_away_does_not_end_the_server(tmp_path: Path) -> None:
    path = tmp_path / "large.pftrace"
    with path.open("wb") as file:
        file.truncate(1 << 28)  # more than the sockets buffer
    with served(path) as (server, thread):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(f"GET {server.url_path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert ask(server, "GET", "/none")[0].status == 404
        assert thread.is_alive()
        assert server.downloads == 0


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:9001",
        "evil.example",
        "",
        "127.0.0.1.evil.example:9001",
        "localhost:1@evil.example",
        "[::1]:9001",
    ],
)
def test_a_page_whose_name_was_led_to_this_computer_is_refused(trace: Path, host: str) -> None:
    with served(trace) as (server, thread):
        for method in ("GET", "HEAD", "OPTIONS"):
            response, body = ask(server, method, origin=None, host=host)
            assert (response.status, body) == (403, b"")
        assert thread.is_alive()


def test_two_hosts_or_none_are_refused(trace: Path) -> None:
    with served(trace) as (server, _):
        for hosts in ("", "Host: localhost\r\nHost: evil.example\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=90) as client:
                client.sendall(f"GET {server.url_path} HTTP/1.1\r\n{hosts}\r\n".encode())
                assert client.recv(100).startswith(b"HTTP/1.1 403")


def test_a_name_of_any_bytes_is_served(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"[a] b&c#d?\xff\x1b.pftrace")
    path.write_bytes(CONTENT)
    with served(path, keep=True) as (server, _):
        assert ask(server, "GET")[1] == CONTENT
        # an address line writes some characters plainly that others escape
        assert ask(server, "GET", server.url_path.replace("%5Ba%5D", "[a]"))[1] == CONTENT


def test_the_path_cannot_be_guessed_and_differs_each_time(trace: Path) -> None:
    paths = set()
    for _ in range(3):
        with TraceServer(trace, 0, DEFAULT_UI) as server:
            paths.add(server.url_path)
    assert len(paths) == 3
    assert all(len(path.split("/")[1]) >= 22 for path in paths)  # 128 bits


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "CONNECT", "PATCH"])
def test_only_reading_is_answered(trace: Path, method: str) -> None:
    with served(trace) as (server, thread):
        assert ask(server, method)[0].status == 501
        assert thread.is_alive()


def test_other_visitors_stand_in_nobodys_way(
    trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Silent, garbled, half-open and reset connections, more than the server keeps."""
    openings = (
        b"",
        b"GET ",
        b"\x16\x03\x01\x02\x00\x01\x00" * 20,
        b"GET / HTTP/9.9\r\n\r\n",
        b"\xff\xfe\x00" * 99 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 300,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n",
    )
    visitors: list[socket.socket] = []
    with served(trace) as (server, thread):
        for number in range(100):
            visitor = socket.create_connection(("127.0.0.1", server.port), timeout=90)
            visitors.append(visitor)
            with contextlib.suppress(OSError):  # it may be closed already: it is one too many
                visitor.sendall(openings[number % len(openings)])
            if number % 5 == 0:
                visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                visitor.close()
        assert thread.is_alive()
        assert ask(server, "GET")[1] == CONTENT
        thread.join(timeout=90)
        assert not thread.is_alive()
        assert server.downloads == 1
    for visitor in visitors:
        visitor.close()
    assert capfd.readouterr() == ("", "")


def test_of_too_many_silent_visitors_the_oldest_is_sent_away(trace: Path) -> None:
    with served(trace) as (server, _), contextlib.ExitStack() as stack:
        visitors = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=90))
            for _ in range(70)
        ]
        assert [visitor.recv(1) for visitor in visitors[:6]] == [b""] * 6  # told at once
        visitors[6].setblocking(False)
        with pytest.raises(BlockingIOError):
            visitors[6].recv(1)
        assert ask(server, "GET")[1] == CONTENT


def test_a_taken_port_is_a_clear_error(trace: Path) -> None:
    with (
        served(trace) as (server, _),
        pytest.raises(Unavailable, match=f"port {server.port}") as error,
    ):
        TraceServer(trace, server.port, DEFAULT_UI)
    assert error.value.exit_code == 3
    assert "--port" in error.value.hint


def test_the_link_switches_the_gpu_plugins_on() -> None:
    link = Link("https://ui.perfetto.dev", 9001, "/a%20b.pftrace")
    assert link.ui_url.startswith(
        "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a%20b.pftrace"
        "&enablePlugins=dev.perfetto.GpuByProcess,com.meta.GpuCompute&startupCommands=%5B%7B%22id%22"
    )
    told = "\n".join(hints(link))
    assert link.ui_url in told
    assert "ssh -L 9001:127.0.0.1:9001" in told
    assert "Chrome" in told


def test_what_there_is_to_view(tmp_path: Path, trace: Path) -> None:
    assert file_to_view(trace) == trace
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(InputError, match="not a run directory"):
        file_to_view(run)
    (run / "manifest.json").write_text("{}")
    with pytest.raises(InputError) as error:
        file_to_view(run)
    assert "profharness merge" in error.value.hint
    (run / "merged.pftrace").write_bytes(b"x")
    assert file_to_view(run) == run / "merged.pftrace"
    (tmp_path / "empty").touch()
    for missing in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(InputError):
            file_to_view(missing)


def test_origins() -> None:
    assert origin_of("http://localhost:10000/ui/") == "http://localhost:10000"
    for wrong in ("ui.perfetto.dev", "ftp://x", "https://"):
        with pytest.raises(UsageError):
            origin_of(wrong)


def test_a_bare_terminal_opens_no_browser() -> None:
    assert not can_open_browser({}, "linux")
    assert can_open_browser({"DISPLAY": ":0"}, "linux")
    assert can_open_browser({}, "darwin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "profharness", "view", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_serves_once_and_ends_well(trace: Path) -> None:
    port = free_port()
    process = start(
        str(trace), "--port", str(port), "--no-browser", "--ui-origin", "http://127.0.0.1:10000"
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:10000/#!/?url=")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    name = re.search(r"url=http://127\.0\.0\.1:\d+(/[^&]+)", url)
    assert name is not None
    connection.request("GET", name.group(1), headers={"Origin": "http://127.0.0.1:10000"})
    assert connection.getresponse().read() == CONTENT
    _, told = process.communicate(timeout=90)
    assert process.returncode == 0
    assert "was fetched" in told


def test_the_command_ends_well_on_ctrl_c(trace: Path) -> None:
    process = start(str(trace), "--port", str(free_port()), "--no-browser", "--keep")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=90)
    assert (process.returncode, "stopped" in told) == (0, True)


def test_the_command_says_that_the_port_is_taken(trace: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        process = start(str(trace), "--port", str(holder.getsockname()[1]), "--no-browser")
        _, told = process.communicate(timeout=90)
    assert process.returncode == 3
    assert "Traceback" not in told
    assert "port" in told
