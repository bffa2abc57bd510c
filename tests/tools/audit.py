"""What is installed, against known vulnerabilities and against the licences that may be used:
`python tests/tools/audit.py [--where-reached]`, or `make audit`.

pip-audit asks an advisory database about every pinned package. Without --strict it says "no known
vulnerabilities" of what it skipped, and where no database is reached that is everything: so it runs
with --strict, after a database has answered about one package that it is bound to know. pip-licenses
reads what the packages declare; each licence must be one of those below.

Exit code 0: both found nothing. 1: a vulnerability, a package that no database knows, or another
licence. 3: no database is reached, and nothing was audited; with --where-reached this is said and
is no failure. Licences are looked at in any case.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(sys.executable).parent
"""Where the programs of this environment lie."""

KNOWN = "pip==24.0"
"""A package that every advisory database lists."""
SERVICES = ("pypi", "osv")
_SECONDS = 10  # for one answer
_ALL_SECONDS = 300  # for all

ALLOWED = (
    r"MIT( License|-CMU|-0)?",
    r"Apache([- ]2\.0( License)?| Software License| License,? (Version )?2\.0)( WITH LLVM-exception)?",
    r"(The )?(New |Modified )?(3-Clause )?BSD([- ][0-4]-Clause)?( License)?",
    r"0BSD",
    r"PSF-2\.0|Python Software Foundation License|CNRI-Python",
    r"ISC( License \(ISCL\))?",
    r"MPL-2\.0|Mozilla Public License 2\.0 \(MPL 2\.0\)",
    r"BSL-1\.0|ZPL-2\.1|Zlib|Unlicense|HPND",
)
"""What lets others use, change and pass on the code, at most with their own files under the same
licence (MPL): no licence that reaches into programs which only call the package.
"""
DECLARED_ELSEWHERE: Mapping[str, str] = {
    "atheris": "Apache-2.0",  # its metadata name none; the LICENSE file of its repository does
    "profharness": "Apache-2.0",  # this project
}


@dataclass(frozen=True)
class Outcome:
    """What one part of the audit came to: whether it was carried out, and what it found."""

    lines: tuple[str, ...]
    found: bool = False
    reached: bool = True


def is_allowed(licence: str) -> bool:
    """Whether all parts of an SPDX expression may be used, of alternatives one. Where a package
    lists several classifiers, all must be allowed: they do not say which of them is a choice.
    """
    return all(
        any(
            re.fullmatch(f"(?i:{'|'.join(ALLOWED)})", one.strip(" ()"))
            or re.fullmatch(f"(?i:{'|'.join(ALLOWED)})", one.strip())
            for one in re.split(r" OR ", part)
        )
        for part in re.split(r" AND |; ", licence)
    )


def licences(program: Sequence[str]) -> Outcome:
    """What the packages declare, as pip-licenses reads it."""
    done = subprocess.run(
        [*program, "--format=json", "--from=mixed", "--with-system"],
        capture_output=True,
        text=True,
        check=True,
    )
    packages = json.loads(done.stdout)
    refused = [
        f"{one['Name']} {one['Version']}: {licence}"
        for one in packages
        if not is_allowed(licence := DECLARED_ELSEWHERE.get(one["Name"].lower(), one["License"]))
    ]
    if refused:
        return Outcome((f"licences: {len(refused)} not allowed", *refused), found=True)
    return Outcome((f"licences: all {len(packages)} packages allowed",))


def vulnerabilities(program: Sequence[str], packages: Sequence[str]) -> Outcome:
    """What a database says of the packages, each `name==version`."""
    with ThreadPoolExecutor(len(SERVICES)) as pool:
        probes = list(pool.map(lambda one: _ask(program, one, [KNOWN], 3 * _SECONDS), SERVICES))
    reached = [
        service
        for service, probe in zip(SERVICES, probes, strict=True)
        if _audited(probe) is not None
    ]
    if not reached:
        reasons = [
            f"{service}: {_last_line(probe)}"
            for service, probe in zip(SERVICES, probes, strict=True)
        ]
        first = "vulnerabilities: nothing was audited, no advisory database is reached"
        return Outcome((first, *reasons), reached=False)
    service = reached[0]
    done = _ask(program, service, packages, _ALL_SECONDS)
    audited = _audited(done)
    if audited is None:
        return Outcome((f"vulnerabilities: {service} stopped", _last_line(done)), found=True)
    known = [
        f"{one['name']} {one['version']}: {fault['id']}, mended in "
        f"{', '.join(fault['fix_versions']) or 'no version'}"
        for one in audited
        for fault in one["vulns"]
    ]
    lines = (f"vulnerabilities: {len(known)} known to {service} of {len(audited)} packages", *known)
    return Outcome(lines, found=bool(known))


def _audited(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]] | None:
    """The packages of an answer, each with its vulnerabilities; None where there was none."""
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return None
    return None if any("vulns" not in one for one in packages) else packages


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    told = (done.stdout + done.stderr).strip().splitlines()
    return told[-1][:300] if told else f"status {done.returncode}"


def _ask(
    program: Sequence[str], service: str, packages: Sequence[str], seconds: float
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requirements.txt"
        listed.write_text("".join(f"{one}\n" for one in packages))
        argv = [*program, "--strict", "--progress-spinner=off", f"--timeout={_SECONDS}"]
        argv += [f"--vulnerability-service={service}", "--format=json"]
        argv += ["--no-deps", "--disable-pip", f"--requirement={listed}"]
        try:
            return subprocess.run(
                argv, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 124, "", f"no answer within {seconds:g} s")


def installed() -> list[str]:
    """The packages of this environment without their builds (`+cpu`), but for what is no package of
    an index: this checkout, and what was installed from a file.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pip", "list", "--format=json", "--exclude-editable"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [f"{one['name']}=={one['version'].partition('+')[0]}" for one in json.loads(done.stdout)]


def verdict(outcomes: Sequence[Outcome], *, where_reached: bool) -> int:
    """Print them; the exit code."""
    for outcome in outcomes:
        print("\n  ".join(outcome.lines))
    if any(outcome.found for outcome in outcomes):
        return 1
    return 0 if where_reached or all(outcome.reached for outcome in outcomes) else 3


def main(words: Sequence[str]) -> int:
    if not set(words) <= {"--where-reached"}:
        sys.exit(f"error: {' '.join(words)}: the only option is --where-reached")
    outcomes = [
        licences([str(HERE / "pip-licenses"), f"--python={sys.executable}"]),
        vulnerabilities([str(HERE / "pip-audit")], installed()),
    ]
    return verdict(outcomes, where_reached=bool(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
