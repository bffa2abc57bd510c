"""Which versions of AMD's tools came with which ROCm release: one table, and how to look things up
in it. Pure.

A tool's options follow its own version: two lines of ROCm releases ran side by side from 7.9 to
7.14, so that the order of their numbers is not the order of features (7.2.4 has a newer
rocprofiler-sdk than 7.12). Where a tool does not tell its own version, the release of the
installation that it lies in names it through this table.

Source: the projects' own lists of changes and AMD's pages of each release. Of 7.9 to 7.12, 10.1 and
10.2 no version of rocprofiler-sdk was published; the row holds the newest that is certain to be in
it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Version = tuple[int, ...]
BEFORE: Version = (0,)
"""The own version of a tool under a name of the time before its present one (omniperf, omnitrace):
their numbers are higher than their successors'.
"""

_OTHER_LINE: Version = (7, 9)  # the line of releases that ran beside 7.0 to 7.2

_NUMBER = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class Release(NamedTuple):
    """One ROCm release and the tools' own versions in it; BEFORE where a tool did not exist yet
    under its present name.

    `sdk` is rocprofiler-sdk's (rocprofv3), `systems` rocprof-sys's, `compute` rocprof-compute's.
    """

    rocm: Version
    sdk: Version
    systems: Version
    compute: Version


# in the order of features of the column sdk
RELEASES: tuple[Release, ...] = (
    Release((5, 7), BEFORE, BEFORE, BEFORE),
    Release((6, 2), (0, 4, 0), BEFORE, BEFORE),
    Release((6, 3), (0, 5, 0), (0, 1), (3, 0)),
    Release((6, 4), (0, 6, 0), (1, 0), (3, 1)),
    Release((7, 0), (1, 0, 0), (1, 1), (3, 2)),
    Release((7, 9), (1, 0, 0), BEFORE, BEFORE),
    Release((7, 10), (1, 0, 0), (1, 1), (3, 2)),
    Release((7, 1), (1, 1, 0), (1, 2), (3, 3)),
    Release((7, 2), (1, 1, 0), (1, 3), (3, 4)),
    Release((7, 11), (1, 1, 0), (1, 4), (3, 4)),
    Release((7, 12), (1, 1, 0), (1, 5), (3, 5)),
    Release((7, 2, 4), (1, 3, 0), (1, 3), (3, 4)),
    Release((7, 13), (1, 3, 0), (1, 6), (3, 6)),
    Release((7, 14), (1, 3, 2), (1, 7), (3, 7)),
    Release((10, 0), (1, 3, 5), (1, 8), (3, 8)),
    Release((10, 1), (1, 3, 5), (1, 9), (3, 9)),
    Release((10, 2), (1, 3, 5), (1, 10), (3, 10)),
)
NEWEST = RELEASES[-1]
"""The newest release whose tools are known; later ones are treated like it."""


def parse(version: str) -> Version | None:
    """Major and minor, and the third number where there is one; None for a text without. Candidates
    and nightly builds (7.13.0rc0, 7.13.0a20260515) count as what they lead to.
    """
    match = _NUMBER.search(version)
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


def text(version: Version) -> str:
    """`6.2`, as people write it; a third number only where a release differs by it."""
    return ".".join(str(part) for part in version)


def of_rocm(version: Version) -> Release:
    """The newest known release that is not newer than this one; the oldest for what came before."""
    fitting = [release for release in RELEASES if release.rocm <= version]
    return max(fitting, key=lambda release: release.rocm, default=RELEASES[0])


def of_tool(column: str, own: Version) -> Release | None:
    """The first release with this version of a tool, or with the newest one before it; None where
    the tool is older than the table. The column is `sdk`, `systems` or `compute`.
    """
    known = [release for release in RELEASES if BEFORE < getattr(release, column) <= own]
    if not known:
        return None
    best = max(getattr(release, column) for release in known)
    return min(release for release in known if getattr(release, column) == best)


def first_with(column: str, own: Version) -> tuple[Version, ...]:
    """The first ROCm release that has this version of a tool, and that of the other line where some
    releases of it came before.
    """
    having = [release.rocm for release in RELEASES if getattr(release, column) >= own]
    older = [release.rocm for release in RELEASES if getattr(release, column) < own]
    first = min(having)
    other = [version for version in having if version >= _OTHER_LINE]
    split = first < _OTHER_LINE <= max(older, default=first)
    return (first, min(other)) if split and other else (first,)


def newest_of(column: str) -> Version:
    """The newest known version of a tool."""
    return max(getattr(release, column) for release in RELEASES)
