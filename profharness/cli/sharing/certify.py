"""`profharness certify`: a certificate of a run on one page and as JSON, and the check of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profharness.errors import UsageError

_NAME = "certificate.json"


def certify(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="Run directory (default: the newest run; with --check the folder of FILE).",
            metavar="RUN",
        ),
    ] = None,
    point: Annotated[
        str,
        typer.Option(
            "--point",
            help="The point to judge, such as torch-b256 (default: the one with the highest "
            "throughput).",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The JSON document; the page lies beside it (default: RUN/certificate.json).",
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            help="Recompute this certificate from its run, and say what is not as it was.",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a certificate that exists.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the document, or the check, as JSON.")
    ] = False,
) -> None:
    """Judge by named criteria whether a device is saturated by the workload of a run, and write one
    page and one JSON document with the hashes of all files that this rests on.

    The exit code is 0 if the device is saturated, and 1 if it is not, if that is not decided, or if
    the run cannot be trusted. With --check it is 0 if the certificate holds, whatever it says.
    """
    if check is None:
        _certify(run, point, output, force=force, as_json=json)
        return
    if point or output is not None or force:
        raise UsageError(
            "--check only reads: it takes neither --point nor -o nor --force",
            "leave them out; the certificate says which point it is of",
        )
    _check(check, run, as_json=json)


def _certify(
    run: Path | None, point: str, output: Path | None, *, force: bool, as_json: bool
) -> None:
    import hashlib

    import msgspec

    from profharness.analysis.certificate.document import Page
    from profharness.cli.parsing.newest import named, newest_of
    from profharness.cli.running.answers import near, printed
    from profharness.cli.sharing.places import require_free
    from profharness.report.certificate.json import encode
    from profharness.report.certificate.page import render
    from profharness.report.certificate.text import text
    from profharness.rundir.paths import RunDir, write_atomic
    from profharness.understand.certificate.making import certify as made

    root = RunDir.open(newest_of(1)[0] if run is None else named(run)).root
    place = output or root / _NAME
    page = _page_of(place)
    for one in (place, page):
        require_free(one, (root,), force=force)
    certificate = made(root, point)
    in_run = place.parent.resolve() == root.resolve()
    drawn = render(certificate, place.name, in_run=in_run).encode("utf-8", "surrogateescape")
    beside = Page(name=page.name, sha256=hashlib.sha256(drawn).hexdigest())
    document = encode(msgspec.structs.replace(certificate, page=beside))
    write_atomic(page, drawn)
    write_atomic(place, document)
    if as_json:
        printed(document.decode(), place)
    else:
        printed(f"{text(certificate.judgement)}{near(page)}   {near(place)}\n", place)
    if certificate.judgement.outcome != "saturated":
        raise typer.Exit(1)


def _page_of(place: Path) -> Path:
    """Where the page of a document lies. Raises UsageError for a name that is the page's own."""
    if place.suffix in (".html", ".htm"):
        raise UsageError(
            f"{place} names the page, and -o the JSON document",
            f"write -o {place.with_suffix('.json')}; the page lies beside it",
        )
    return place.with_suffix(".html")


def _check(document: Path, run: Path | None, *, as_json: bool) -> None:
    from profharness.cli.running.answers import printed
    from profharness.report.certificate.checked import check_json, check_text
    from profharness.understand.certificate.checking import check

    found = check(document, run)
    printed(check_json(found) if as_json else check_text(found, str(document)), document)
    if not found.holds:
        raise typer.Exit(1)
