"""`view --report`: the run's page with links that open the trace, and who gets neither."""

from __future__ import annotations

import html
import http.client
import re
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
import pytest

from profharness.analysis.pictures.records import Pictures
from profharness.cli.viewing.link import DEFAULT_UI, Link, Spot
from profharness.cli.viewing.linked import LinkedPage, page_of
from profharness.cli.viewing.server import TraceServer
from profharness.errors import InputError, UsageError
from profharness.readers import read
from profharness.report.page.html import render
from profharness.report.page.verdict import spot_commands, view_command
from profharness.writers.perfetto import write
from tests.cli.viewing.test_view import ask, free_port, served, start
from tests.report.samples import command
from tests.writers.rich.kineto_file import write_kineto

RUN = msgspec.structs.replace(command(), pictures=Pictures(longest_step=3))
WHOLE = Link(DEFAULT_UI, 9001, "/x/m.pftrace", window=(100, 200))


def found(wanted: Sequence[str]) -> Mapping[str, Spot | UsageError]:
    """A slice of each place as long as its name."""
    return {place: Spot(1_000_000, len(place), place) for place in wanted}


def commanded(*commands: str) -> str:
    """A page with these commands as the report's page writes them."""
    spans = (f'<span class="command"><code>{html.escape(one)}</code></span>' for one in commands)
    return "\n".join(spans)


def told(page: LinkedPage, name: str) -> dict[str, str]:
    answer = page.answer(name)
    assert answer is not None
    assert answer.status == 302
    return {key: one[0] for key, one in parse_qs(answer.location.partition("#!/?")[2]).items()}


def links(page: LinkedPage) -> list[str]:
    answer = page.answer("report.html")
    assert answer is not None
    return re.findall(r'<a href="(open/[^"]*)" target="_blank"', answer.body.decode())


def test_each_command_of_the_page_that_opens_the_trace_has_a_link() -> None:
    text = render(RUN)
    page = LinkedPage(text, WHOLE, found)
    assert len(spot_commands(RUN)) == 2
    assert links(page) == ["open/0", "open/1", "open/2"]
    answer = page.answer("report.html")
    assert answer is not None
    for one in (view_command(RUN), *(line for _, line in spot_commands(RUN))):
        assert f"{html.escape(one)}</code></span> <a href=" in answer.body.decode()
    assert re.sub(r' <a href="open/\d"[^>]*>open it</a>', "", answer.body.decode()) == text
    assert told(page, "open/0")["visStart"] == "100"
    assert "ts" not in told(page, "open/0")
    assert (told(page, "open/1")["ts"], told(page, "open/1")["dur"]) == ("1000000", "1")
    assert told(page, "open/2")["dur"] == str(len(RUN.hotspots[0].rows[0].name))


@pytest.mark.parametrize(
    "line",
    [
        "profharness run -- x",
        "profharness view",
        "profharness view r --at",
        "profharness view r --at ''",
        "profharness view r --port 1",
        "profharness view r --at 3 --keep",
        "profharness view 'r --at 3",
        "rm -rf x --at 3",
    ],
)
def test_no_other_command_has_one(line: str) -> None:
    page = LinkedPage(commanded(line), WHOLE, found)
    assert links(page) == []
    assert page.answer("open/0") is None


def test_hostile_names_stay_out_of_addresses() -> None:
    name = '3"><script>\r\nSet-Cookie: a/../..'
    page = LinkedPage(commanded(f"profharness view r --at '{name}'"), WHOLE, found)
    assert links(page) == ["open/0"]
    assert told(page, "open/0")["dur"] == str(len(name))
    for other in ("open/", "open/00", "open/1", "open/-1", "open/0/", "../report.html", "", name):
        assert page.answer(other) is None


def test_the_links_of_a_page_are_bounded() -> None:
    page = LinkedPage(commanded(*["profharness view r --at 3"] * 500), WHOLE, found)
    assert len(links(page)) == 100


def test_the_trace_is_searched_once_and_not_before_a_click() -> None:
    searches: list[Sequence[str]] = []

    def find(wanted: Sequence[str]) -> Mapping[str, Spot | UsageError]:
        searches.append(wanted)
        return {**found(wanted), "gone": UsageError("--at gone: no kernel", "look elsewhere")}

    lines = [f"profharness view r{at}" for at in ("", " --at 3", " --at gone")]
    page = LinkedPage(commanded(*lines), WHOLE, find)
    told(page, "open/0")
    assert searches == []
    told(page, "open/1")
    missing = page.answer("open/2")
    assert searches == [["3", "gone"]]
    assert missing is not None
    assert (missing.status, missing.location) == (404, "")
    assert missing.body == b"--at gone: no kernel\nlook elsewhere\n"


def test_a_damaged_trace_is_told() -> None:
    def find(_: Sequence[str]) -> Mapping[str, Spot | UsageError]:
        raise InputError("m.pftrace: damaged", "copy it again")

    answer = LinkedPage(commanded("profharness view r --at 3"), WHOLE, find).answer("open/0")
    assert answer is not None
    assert (answer.status, answer.body) == (404, b"m.pftrace: damaged\ncopy it again\n")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TraceServer]:
    trace = tmp_path / "m.pftrace"
    trace.write_bytes(b"trace")
    with served(trace, keep=True) as (server, _):
        server.page = LinkedPage(
            commanded("profharness view r"), Link(DEFAULT_UI, server.port, server.url_path), found
        )
        yield server


def folder(server: TraceServer) -> str:
    return server.url_path.rpartition("/")[0]


def test_page_and_links_are_served_beside_the_trace_again_and_again(server: TraceServer) -> None:
    for _ in range(2):
        response, body = ask(server, "GET", f"{folder(server)}/report.html", origin=None)
        assert response.status == 200
        assert b'href="open/0"' in body
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "sandbox" in policy
        assert "allow-same-origin" not in policy
        assert not any(name.startswith("Access-Control") for name in response.headers)
        response, body = ask(server, "GET", f"{folder(server)}/open/0", origin=None)
        assert (response.status, body) == (302, b"")
        assert response.headers["Location"].startswith(
            f"{DEFAULT_UI}/#!/?url=http://127.0.0.1:{server.port}{server.url_path}&"
        )
        assert ask(server, "GET")[1] == b"trace"
    response, body = ask(server, "HEAD", f"{folder(server)}/report.html", origin=None)
    assert (response.status, body) == (200, b"")


@pytest.mark.parametrize("name", ["report.html", "open/0"])
@pytest.mark.parametrize("origin", [DEFAULT_UI, "https://evil.example", "null"])
def test_no_script_reads_the_page(server: TraceServer, name: str, origin: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS"):
        response, body = ask(server, method, f"{folder(server)}/{name}", origin=origin)
        assert (response.status in {403, 404}, body) == (True, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/report.html",
        "/x/report.html",
        "{folder}/",
        "{folder}/report.html?",
        "{folder}/report.html/",
        "{folder}/report%2Ehtml",
        "{folder}/open/1",
        "{folder}//open/0",
        "/%C3%BF/report.html",
    ],
)
def test_no_other_name_is_served_beside_the_page(server: TraceServer, path: str) -> None:
    given = path.format(folder=folder(server))
    response, body = ask(server, "GET", given, origin=None)
    assert (response.status, body) == (404, b"")


def test_a_page_whose_name_was_led_here_gets_no_page(server: TraceServer) -> None:
    for name in ("report.html", "open/0"):
        path = f"{folder(server)}/{name}"
        response, body = ask(server, "GET", path, origin=None, host="evil.example:9001")
        assert (response.status, body) == (403, b"")


def test_what_has_no_page(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        page_of(tmp_path)
    assert "profharness report" in error.value.hint
    (tmp_path / "f.pftrace").write_bytes(b"x")
    with pytest.raises(InputError, match="no run"):
        page_of(tmp_path / "f.pftrace")
    shutil.copy(tmp_path / "f.pftrace", tmp_path / "other.html")
    run = tmp_path / "run"
    run.mkdir()
    (run / "report.html").symlink_to(tmp_path / "other.html")
    with pytest.raises(InputError, match="not read"):
        page_of(run)


def run_folder(root: Path) -> Path:
    """A run with a merged trace of one step, and its page."""
    root.mkdir()
    (root / "manifest.json").write_text("{}")
    write(read(write_kineto(root / "t.json")), root / "merged.pftrace")
    (root / "report.html").write_text(render(RUN))
    return root


@pytest.mark.slow
def test_the_command_serves_the_page_until_ctrl_c(tmp_path: Path) -> None:
    port = free_port()
    run = run_folder(tmp_path / "run")
    process = start(str(run), "--report", "--port", str(port), "--no-browser")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/[\w-]{{22,}}/report\.html", url)
    path = url.partition(str(port))[2]
    for name, status in ((path, 200), (path.replace("report.html", "open/0"), 302)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
        connection.request("GET", name)
        assert connection.getresponse().status == status
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=90)
    assert (process.returncode, "stopped" in said, "Ctrl-C" in said) == (0, True, True)


def test_one_place_and_a_page_of_several_are_told_apart(tmp_path: Path) -> None:
    process = start(str(tmp_path), "--report", "--at", "3")
    _, said = process.communicate(timeout=90)
    assert process.returncode == 2
    assert "--report" in said
