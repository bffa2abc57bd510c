"""What could not be written, in one sentence."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from profharness.rundir.lost import LostFile, lost_finding

AT = 1_800_000_000_000_000_000  # 2027-01-15 08:00:00 UTC


def error(number: int, path: Path | None = None) -> OSError:
    return OSError(number, os.strerror(number), *([str(path)] if path else []))


def test_one_finding_names_the_files_the_reasons_and_the_first_time(tmp_path: Path) -> None:
    log, other = tmp_path / "points" / "stdout.log", tmp_path / "telemetry" / "n.samples.bin"
    full, quota = os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)
    found = lost_finding(
        [
            LostFile(str(other), quota, AT + 5_000_000_000),
            LostFile(str(log), full, AT + 2_000_000_000),
            LostFile(str(log), full, AT),
            *(LostFile(str(tmp_path / f"x{n}"), full, AT + 1) for n in range(2)),
        ],
        tmp_path,
    )
    assert found is not None
    assert (found.id, found.severity, found.figures) == ("output-lost", "error", {"files": 4})
    assert found.message == (
        f"from 2027-01-15 08:00:00 UTC on not all could be written ({quota}, {full}): "
        "points/stdout.log, telemetry/n.samples.bin, x0 and 1 more; the workload went on"
    )


def test_nothing_lost_is_no_finding(tmp_path: Path) -> None:
    assert lost_finding([], tmp_path) is None


def test_the_error_names_the_file_where_it_knows_it(tmp_path: Path) -> None:
    named = LostFile.of("the run folder", error(errno.EROFS, tmp_path / "a"))
    assert (named.path, named.why) == (str(tmp_path / "a"), os.strerror(errno.EROFS))
    assert LostFile.of("the run folder", error(errno.EROFS)).path == "the run folder"
    found = lost_finding([LostFile("/elsewhere/x", "why", AT)], tmp_path)
    assert found is not None
    assert "/elsewhere/x" in found.message
