"""`profharness run --resume -o DIR`: the settings are those of the run; what is given besides must
agree with them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.cli.parsing.commands import Settings
from profharness.cli.parsing.words import Rest
from profharness.errors import UsageError
from profharness.measure.resume import Again, failed, is_complete, recorded_request
from profharness.options.request import Request
from profharness.options.settings import COMMAND_LINE, from_mapping, read_scan_file
from profharness.rundir.claims import seal
from profharness.rundir.paths import RunDir
from profharness.rundir.shown.screen import mention
from profharness.scans import SCANS

_NOT_OF_THE_RUN = ("output", "yes", "live_page")
"""What may be said anew of a run that goes on: where it is, that it may, and how it is watched."""


@dataclass(frozen=True)
class GoingOn:
    """What was said beside the settings of the run."""

    again: Again
    as_json: bool
    quiet: bool
    take_over: bool


def resumed(scan: str | None, flags: Settings, rest: Rest, going_on: GoingOn) -> int:
    """Go on with the run in --output. Raises UsageError where options differ from those that it was
    begun with.
    """
    if not flags.get("output"):
        raise UsageError("--resume needs to know the run", "name its directory: --output DIR")
    if rest.given:
        raise UsageError(
            "--resume is for scans, and a command stands after --",
            "run the command again, with another --output",
        )
    root = Path(str(flags["output"])).absolute()
    manifest = RunDir.open(root).read_manifest()
    recorded = recorded_request(manifest, root)
    _agree(_asked(scan, flags), recorded, root)
    if not seal.holds(root, manifest):
        from profharness.cli.running.consent import require_consent

        require_consent(recorded, root, agreed=bool(flags.get("yes")))
    from profharness.cli.running.steps import perform

    if is_complete(manifest, going_on.again):
        mention(f"profharness: nothing is missing in {root}")
    elif not going_on.quiet and not going_on.as_json:
        kept = len(manifest.points) - going_on.again.retry_failed * len(failed(manifest))
        print(
            f"resume  {kept} measured point{'s' * (kept != 1)} stand{'s' * (kept == 1)}; "
            "the plan is that of the whole run",
            file=sys.stderr,
        )
    return perform(
        msgspec.structs.replace(recorded, live_page=bool(flags.get("live_page"))),
        tuple(sys.argv),
        as_json=going_on.as_json,
        quiet=going_on.quiet,
        again=going_on.again,
        take_over=going_on.take_over,
    )


def _asked(scan: str | None, flags: Settings) -> Settings:
    """What was given, by setting."""
    given = {key: value for key, value in flags.items() if key not in _NOT_OF_THE_RUN}
    if scan is None:
        return given
    if scan.endswith(".toml"):
        return {"name": Path(scan).stem, **read_scan_file(Path(scan)), **given}
    if scan not in SCANS:
        raise UsageError(
            f"there is no scan {scan!r}", f"known scans: {', '.join(SCANS)}, or a .toml file"
        )
    return {"scan": scan, **given}


def _agree(given: Settings, recorded: Request, root: Path) -> None:
    asked = from_mapping(
        {"scan": recorded.scan, "via": recorded.via, "model": recorded.model, **given}, COMMAND_LINE
    )
    differing = [key for key in given if getattr(asked, key) != getattr(recorded, key)]
    if differing:
        key = differing[0]
        raise UsageError(
            f"--resume: the run in {root} was begun with {key} {getattr(recorded, key)!r}, "
            f"not {getattr(asked, key)!r}",
            "leave the option out: a run goes on as it was begun; or make a new run, "
            "with another --output",
        )
