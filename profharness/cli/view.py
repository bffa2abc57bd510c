"""`profharness view`: open a run's or file's trace in the Perfetto UI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profharness.cli.view_server import DEFAULT_PORT, DEFAULT_UI
from profharness.rundir.shown.screen import mention


def view(
    target: Annotated[
        Path,
        typer.Argument(
            help="Run directory (its merged.pftrace) or trace file.", metavar="RUN|FILE"
        ),
    ],
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65535, help="Port on 127.0.0.1; ui.perfetto.dev reaches 9001 only."
        ),
    ] = DEFAULT_PORT,
    ui_origin: Annotated[
        str, typer.Option(metavar="URL", help="Address of the Perfetto UI, for one of your own.")
    ] = DEFAULT_UI,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on serving after the first download, until Ctrl-C.")
    ] = False,
) -> None:
    """Serve a trace to the Perfetto UI in your browser; nothing leaves this computer."""
    import os
    import sys
    import webbrowser

    from profharness.cli import view_server as viewer

    path = viewer.file_to_view(target)
    origin = viewer.origin_of(ui_origin)
    try:
        with viewer.TraceServer(path, port, origin, keep=keep, log=mention) as server:
            link = viewer.Link(ui_origin, server.port, server.url_path)
            for hint in viewer.hints(link):
                mention(hint)
            typer.echo(link.ui_url)
            if not no_browser and viewer.can_open_browser(os.environ, sys.platform):
                webbrowser.open(link.ui_url)
            server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        mention("stopped: a tab that is open keeps the trace that it has loaded")
