"""`profharness view`: open a run's or file's trace in the Perfetto UI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profharness.cli.viewing.link import DEFAULT_PORT, DEFAULT_UI
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
    at: Annotated[
        str,
        typer.Option(
            metavar="STEP|KERNEL",
            help="Open at this step (its number) or kernel (its name or a part of it: the longest "
            "launch; KERNEL#3: the third), with the slice selected.",
        ),
    ] = "",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Go on serving after the first download, until Ctrl-C.")
    ] = False,
) -> None:
    """Serve a trace to the Perfetto UI in your browser; nothing leaves this computer."""
    import os
    import sys
    import webbrowser

    from profharness.cli.viewing import link as links
    from profharness.cli.viewing import server as viewer

    path = viewer.file_to_view(target)
    origin = links.origin_of(ui_origin)
    spot = None
    if at:
        from profharness.cli.viewing.spots import spot_in

        spot = spot_in(path, target if target.is_dir() else None, at)
    try:
        with viewer.TraceServer(path, port, origin, keep=keep, log=mention) as server:
            link = links.Link(ui_origin, server.port, server.url_path, spot)
            for hint in links.hints(link):
                mention(hint)
            typer.echo(link.ui_url)
            if not no_browser and links.can_open_browser(os.environ, sys.platform):
                webbrowser.open(link.ui_url)
            server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        mention("stopped: a tab that is open keeps the trace that it has loaded")
