"""`profharness view`: open a run's or file's trace in the Perfetto UI, or a run's report as a page
whose links open the trace there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from profharness.cli.viewing.link import DEFAULT_PORT, DEFAULT_UI
from profharness.errors import UsageError
from profharness.options.declared import Limit, Option
from profharness.rundir.shown.screen import mention

if TYPE_CHECKING:
    from profharness.cli.viewing.link import Link, Spot
    from profharness.cli.viewing.server import TraceServer


class ViewLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `view` asks for."""

    target: Annotated[
        Path,
        Option(
            "Run directory (its merged.pftrace) or trace file.", argument=True, metavar="RUN|FILE"
        ),
    ]
    port: Annotated[
        int,
        Option(
            "Port on 127.0.0.1; ui.perfetto.dev reaches 9001 only.",
            limit=Limit(least=1, most=65535),
        ),
    ] = DEFAULT_PORT
    ui_origin: Annotated[
        str, Option("Address of the Perfetto UI, if you run one of your own.", metavar="URL")
    ] = DEFAULT_UI
    at: Annotated[
        str,
        Option(
            "Open at this step (its number) or kernel (its name or a part of it: the longest "
            "launch; KERNEL#3: the third), with the slice selected.",
            metavar="STEP|KERNEL",
        ),
    ] = ""
    report: Annotated[
        bool,
        Option("Open the run's report instead, with links that open the trace, until Ctrl-C."),
    ] = False
    no_browser: Annotated[bool, Option("Only print the link.")] = False
    keep: Annotated[bool, Option("Go on serving after the first download, until Ctrl-C.")] = False


def view(line: ViewLine) -> None:
    """Serve a trace to the Perfetto UI in your browser; nothing leaves this computer."""
    import os
    import sys
    import webbrowser

    from profharness.cli.viewing import link as links
    from profharness.cli.viewing import server as viewer
    from profharness.cli.viewing.linked import page_of

    if line.at and line.report:
        raise UsageError(
            "--at opens the trace at one place, --report a page with links to several",
            "leave one of them out",
        )
    path = viewer.file_to_view(line.target)
    origin = links.origin_of(line.ui_origin)
    page = page_of(line.target) if line.report else None
    spot, window = _shown(line, path)
    keep = line.keep or line.report
    try:
        with viewer.TraceServer(path, line.port, origin, keep=keep, log=mention) as server:
            link = links.Link(line.ui_origin, server.port, server.url_path, spot, window)
            url = link.ui_url if page is None else _serve_page(server, page, link, line.target)
            for hint in links.hints(link) if page is None else links.page_hints(link, url):
                mention(hint)
            typer.echo(url)
            if not line.no_browser and links.can_open_browser(os.environ, sys.platform):
                webbrowser.open(url)
            server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        mention("stopped: a tab that is open keeps the trace that it has loaded")


def _shown(line: ViewLine, trace: Path) -> tuple[Spot | None, tuple[int, int] | None]:
    """The slice that is asked for, and the time to show where none is."""
    run = line.target if line.target.is_dir() else None
    if line.at:
        from profharness.cli.viewing.spots import spot_in

        return spot_in(trace, run, line.at), None
    from profharness.cli.viewing.interest import window_of

    return None, None if run is None else window_of(run)


def _serve_page(server: TraceServer, page: str, link: Link, run: Path) -> str:
    """Have the page served beside the trace; gives its address."""
    from profharness.cli.viewing.linked import LinkedPage

    def find(wanted: Sequence[str]) -> Mapping[str, Spot | UsageError]:
        from profharness.cli.viewing.spots import spots_in

        return spots_in(server.path, run, wanted)

    server.page = LinkedPage(page, link, find)
    return server.page_url
