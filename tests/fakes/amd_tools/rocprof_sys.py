"""rocprof-sys, and omnitrace before it: sets the environment and becomes the command.

Options, variables and the files that are left follow the tool's own version. `plan` decides what is
left, without starting anything.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NoReturn

from tests.fakes.amd_tools.starting import replace_by

VERSIONS = {
    "6.3": "0.1.0",
    "6.4": "1.0.0",
    "7.0": "1.1.0",
    "7.1": "1.2.0",
    "7.2": "1.3.0",
    "7.11": "1.4.0",
    "7.12": "1.5.0",
    "7.13": "1.6.0",
    "7.14": "1.7.0",
    "10.0": "1.8.0",
    "10.1": "1.9.0",
    "10.2": "1.10.0",
}
RELEASES = tuple(VERSIONS)
ATTACHING = RELEASES[RELEASES.index("7.12") :]  # those with a program that attaches
OLD_RELEASES = ("5.7", "6.1", "6.2")
OLD = (0,)  # any omnitrace

Version = tuple[int, ...]
ALWAYS: Version = (0,)
NEVER: Version = (99,)

# of run and sample: the words of each option, what it takes after it, and from which version on
_OPTIONS: tuple[tuple[tuple[str, ...], str | None, Version], ...] = (
    *(
        (names, None, ALWAYS)
        for names in (
            ("-T", "--trace"),
            ("-P", "--profile"),
            ("-F", "--flat-profile"),
            ("-S", "--sample"),
            ("-H", "--host"),
            ("-D", "--device"),
            ("--inlines",),
        )
    ),
    *(
        (names, "+", ALWAYS)
        for names in (
            ("-c", "--config"),
            ("-o", "--output"),
            ("-w", "--wait"),
            ("-d", "--duration"),
            ("--trace-file",),
            ("--trace-buffer-size",),
            ("--trace-wait",),
            ("--trace-duration",),
            ("--profile-format",),
            ("--cpus",),
            ("--gpus",),
            ("--tids",),
            ("-I", "--include"),
            ("-E", "--exclude"),
        )
    ),
    (("-L", "--trace-legacy"), None, (1, 4)),
    (("--preset",), "1", (1, 6)),
    (("--gpu",), "?", (1, 6)),
    (("--rocm",), "?", (1, 6)),
    (("--cpu",), "?", (1, 6)),
    (("--parallel",), "?", (1, 6)),
    (("--selected-regions",), "?", (1, 6)),
    (("--output-format",), "+", (1, 7)),
)
# variables: from which version on, and from which on the tool warns of them
_VARIABLES: dict[str, tuple[Version, Version]] = {
    **dict.fromkeys(
        (
            *("TRACE", "PROFILE", "USE_PID", "TIME_OUTPUT", "OUTPUT_PATH", "OUTPUT_PREFIX"),
            *("TRACE_DELAY", "TRACE_DURATION", "PERFETTO_FILE", "CONFIG_FILE", "USE_SAMPLING"),
        ),
        (ALWAYS, NEVER),
    ),
    "ROCM_DOMAINS": ((1, 0), NEVER),
    "ROCTRACER_HSA_API": (ALWAYS, (1, 0)),
    "USE_ROCTX": (ALWAYS, (1, 0)),
    "USE_RCCLP": (ALWAYS, (1, 0)),
    "USE_PERFETTO": (ALWAYS, (1, 4)),
    "VERBOSE": (ALWAYS, (1, 4)),
    "DEBUG": (ALWAYS, (1, 4)),
    "USE_ROCPD": ((1, 2), NEVER),
    "TRACE_CACHED": ((1, 2), (1, 4)),
    "TRACE_LEGACY": ((1, 4), NEVER),
    "LOG_LEVEL": ((1, 4), NEVER),
    "SELECTED_REGIONS": ((1, 6), NEVER),
}
_FORMATS = {"proto": "perfetto", "rocpd": "rocpd", "json": "text", "text": "text", "txt": "text"}


@dataclass(frozen=True)
class Left:
    """What the tool leaves of each process, and what it warns of: `perfetto` is the file's name
    without the pid, empty where it leaves none. `path` is empty for the tool's own folder.
    """

    perfetto: str
    rocpd: bool
    text: bool
    path: str
    by_pid: bool
    timed: bool
    warnings: tuple[str, ...] = ()
    tool: str = "rocprof-sys"


class Refused(Exception):  # noqa: N818  named by what happened
    """In the tool's own words."""


def version_of(tool: str, release: str) -> Version:
    if tool.startswith("omnitrace"):
        return OLD
    return tuple(int(part) for part in VERSIONS[release].split(".")[:2])


def plan(tool: str, release: str, words: Sequence[str], variables: Mapping[str, str]) -> Left:
    """What a call with these words before `--` and these variables would leave. Raises Refused."""
    own = version_of(tool, release)
    chosen = {} if tool.endswith("-python") else _parsed(tool, own, words)
    if tool.endswith("-python"):
        _python_words(tool, own, words)
    prefix = "OMNITRACE_" if tool.startswith("omnitrace") else "ROCPROFSYS_"
    given = {
        name.removeprefix(prefix): value
        for name, value in variables.items()
        if name.startswith(prefix)
    }
    formats = _formats(own, chosen, given)
    ending = "pftrace" if own >= (1, 8) else "proto"
    return Left(
        given.get("PERFETTO_FILE", f"perfetto-trace.{ending}") if "perfetto" in formats else "",
        "rocpd" in formats,
        "text" in formats,
        (chosen.get("output") or [given.get("OUTPUT_PATH", "")])[0],
        _on(given.get("USE_PID"), default=True),
        _on(given.get("TIME_OUTPUT"), default=True),
        tuple(
            f"{prefix}{name} is unknown or deprecated"
            for name in sorted(given)
            if not _VARIABLES.get(name, (NEVER, NEVER))[0] <= own or own >= _VARIABLES[name][1]
        ),
    )


def _on(value: str | None, *, default: bool) -> bool:
    return default if value is None else value.upper() in ("ON", "1", "TRUE", "YES")


def _formats(
    own: Version, chosen: Mapping[str, list[str]], given: Mapping[str, str]
) -> frozenset[str]:
    """Of perfetto, rocpd and text those that are left: the switches win over the variables, these
    over the version's defaults.
    """
    if "output_format" in chosen:
        return frozenset(_FORMATS[word] for word in chosen["output_format"])
    trace = "trace" in chosen or _on(given.get("TRACE"), default=own < (1, 9))
    profile = "profile" in chosen or _on(given.get("PROFILE"), default=own < (1, 9) and not trace)
    rocpd = own >= (1, 2) and _on(given.get("USE_ROCPD"), default=own >= (1, 9))
    return frozenset(
        name
        for name, wanted in (("perfetto", trace), ("rocpd", rocpd), ("text", profile))
        if wanted
    )


def _parsed(tool: str, own: Version, words: Sequence[str]) -> dict[str, list[str]]:
    """The options that were given, by their long names. Raises Refused for one that this version
    lacks, and for two that exclude each other.
    """
    parser = argparse.ArgumentParser(prog=tool, allow_abbrev=False, add_help=False)
    for names, count, since in _OPTIONS:
        if own < since:
            continue
        if count is None:
            parser.add_argument(*names, action="append_const", const="on")
        elif count == "1":
            parser.add_argument(*names, nargs=1)
        else:
            parser.add_argument(*names, nargs=count)
    known, unknown = parser.parse_known_args(list(words))
    if unknown:
        raise Refused(f"[{tool}] unknown option: {' '.join(unknown)}")
    chosen = {name: value for name, value in vars(known).items() if value is not None}
    if "output_format" in chosen:
        chosen["output_format"] = [
            word for text in chosen["output_format"] for word in text.split(",")
        ]
        both = {"trace", "profile", "flat_profile", "profile_format"} & set(chosen)
        if both or set(chosen["output_format"]) - set(_FORMATS):
            raise Refused(
                f"[{tool}] invalid option: --output-format cannot be combined with "
                f"{', '.join(sorted(both)) or 'these formats'}"
            )
    return chosen


def _python_words(tool: str, own: Version, words: Sequence[str]) -> None:
    """The python front end is a Python program with options of its own; abbreviations of them are
    refused since 1.9.
    """
    parser = argparse.ArgumentParser(prog=tool, allow_abbrev=own < (1, 9), add_help=False)
    parser.add_argument("-c", "--config")
    parser.add_argument("-b", "--builtin", action="store_true")
    parser.add_argument("--label", nargs="+")
    parser.add_argument("-s", "--setup")
    parser.add_argument("--trace-c", nargs="?")
    _, unknown = parser.parse_known_args(list(words))
    if unknown:
        raise Refused(f"{tool}: error: unrecognized arguments: {' '.join(unknown)}")


def play(tool: str, release: str, arguments: list[str]) -> NoReturn:
    """Sets the environment and becomes the command."""
    if arguments == ["--version"]:
        version = VERSIONS.get(release, "1.11.3")
        print(f"{tool} v{version} (rev: 1a2b3c, x86_64-linux-gnu, rocm: v{release}.x)")
        sys.exit(0)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    command = arguments[split + 1 :]
    try:
        left = plan(tool, release, arguments[:split], os.environ)
        if not command:
            raise Refused(f"[{tool}] invalid argument: no command")
    except Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        sys.exit(2 if tool.endswith("-python") else 1)
    for warning in left.warnings:
        sys.stderr.write(f"[rocprof-sys][{os.getpid()}] Warning! {warning}\n")
    if tool.endswith("-python"):
        command = [os.environ.get("PYTHON_EXECUTABLE", sys.executable), *command]
    replace_by(command, STAND_IN_TRACER=json.dumps(asdict(left)))
