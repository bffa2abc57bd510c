"""One process at a time measures in a run directory: it holds `holder.json` there.

The file appears whole and only where there is none: it is written under another name and linked
(made with O_EXCL where the file system knows no links). No lock of the operating system is used:
some parallel file systems have none, or keep them to one node.

The file of a process that was killed stays. Who wants its place must first link a file named after
the dead holder's nonce, which one process alone can do, then see that the dead holder's file is
still there, and only then put its own in that place. A process that is killed in between is
succeeded in the same way: its own nonce names the next file.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from profharness.errors import UsageError
from profharness.rundir import harness_process
from profharness.rundir.claims.new_folders import BESIDE_HOLDER, HOLDER
from profharness.rundir.claims.record import Holder, Unreadable, read
from profharness.rundir.outputs import unwritable

# what a file system answers that has no hard links
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_SETTLES_S = 5.0  # within which another claimant has the place, or has given up
_POLL_S = 0.02
_WRITTEN_S = 600.0  # within which a file that was made has been written, or its writer was killed
_ELSEWHERE = "name another place with --output"

IsOver = Callable[[Holder], bool | None]
"""Whether the batch job of a holder has ended, by its scheduler; None where that is not known."""


@dataclass(frozen=True)
class Claim:
    """The right to measure in a run directory, which this process has."""

    path: Path
    nonce: str

    def release(self) -> None:
        """Give it back. A folder that vanished, or takes no more, changes nothing: the process is
        then seen to have ended.
        """
        try:
            found = read(self.path)
            if isinstance(found, Holder) and found.nonce == self.nonce:
                self.path.unlink(missing_ok=True)
        except OSError:
            return


@dataclass(frozen=True)
class Claimant:
    """Who claims: its record, how jobs are asked for, and whether the user said that it takes the
    place of a holder of whom nothing is known.
    """

    record: Holder
    is_over: IsOver
    take_over: bool = False


def identify(job: str = "", restart: int = 0) -> Holder:
    """The record of the process that calls this."""
    return Holder(
        nonce=os.urandom(16).hex(),
        harness=harness_process.identify(),
        since=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        job=job,
        restart=restart,
    )


def claim(root: Path, claimant: Claimant) -> Claim:
    """Become the holder of the run directory `root`. Raises UsageError where another process is,
    or may be, and where nothing can be written.
    """
    own = root / f"{BESIDE_HOLDER}{claimant.record.nonce}"
    try:
        _write(own, msgspec.json.encode(claimant.record))
        try:
            return _claimed(root, claimant, own)
        finally:
            own.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(root, error, _ELSEWHERE) from error


def _claimed(root: Path, claimant: Claimant, own: Path) -> Claim:
    """Try until the place is ours or surely another's: what is seen may change with every look."""
    place, deadline = root / HOLDER, time.monotonic() + _SETTLES_S
    while True:
        if _link(own, place):
            _sweep(root, claimant)
            return Claim(place, claimant.record.nonce)
        standing = read(place)
        if standing is None:
            continue
        late = time.monotonic() > deadline
        if isinstance(standing, Unreadable) and standing.empty and not late:
            time.sleep(_POLL_S)
            continue
        _require_dead(root, standing, claimant)
        succeeded, passing = _succeed(root, standing, claimant, own)
        if succeeded:
            _sweep(root, claimant)
            return Claim(place, claimant.record.nonce)
        if passing is not None and late:
            named = passing.named if isinstance(passing, Holder) else "another process"
            raise UsageError(
                f"{named} is about to take over {root}, whose holder has ended",
                "try again in a moment; if that process has ended as well: --take-over",
            )
        time.sleep(_POLL_S)


def _succeed(
    root: Path, dead: Holder | Unreadable, claimant: Claimant, own: Path
) -> tuple[bool, Holder | Unreadable | None]:
    """Take the place of a dead holder: whether that is done, and if not the claimant that is in the
    way (None where things have changed and another look is due).
    """
    place, chain, victim = root / HOLDER, list[Path](), dead
    while True:
        right = root / f"{BESIDE_HOLDER}after-{victim.nonce}"
        if _link(own, right):
            break
        before = read(right)
        if before is None:
            return False, None
        if not _is_dead(before, claimant):
            return False, before
        chain.append(right)
        victim = before
    # the right was won, but perhaps late: of a holder whose place another one has taken since
    still = read(place)
    if still is None or still.nonce != dead.nonce:
        right.unlink(missing_ok=True)
        return False, None
    right.replace(place)
    for path in chain:
        path.unlink(missing_ok=True)
    return True, None


def _require_dead(root: Path, standing: Holder | Unreadable, claimant: Claimant) -> None:
    """Raises UsageError for a holder that lives, or that may live where the user did not say that
    it does not.
    """
    file = root / HOLDER
    if isinstance(standing, Unreadable):
        if not claimant.take_over:
            raise UsageError(
                f"{file} cannot be read: {standing.why}; a process may be measuring in {root}",
                "if none is: --take-over",
            )
        return
    gone = _is_gone(standing, claimant)
    since = f" since {standing.since}" if standing.since.isprintable() and standing.since else ""
    if gone is False:
        raise UsageError(
            f"{root}: this run has not ended: {standing.named} measures in it{since}",
            f"wait for it, or stop it first; if that process does something else: remove {file}",
        )
    if gone is None and not claimant.take_over:
        raise UsageError(
            f"{root}: this run may not have ended: {standing.named} held it{since}, "
            "and cannot be looked at from here",
            "if you know that it has ended: --take-over",
        )


def _is_dead(found: Holder | Unreadable, claimant: Claimant) -> bool:
    """Of a process that began to take over."""
    gone = None if isinstance(found, Unreadable) else _is_gone(found, claimant)
    return claimant.take_over if gone is None else gone


def _is_gone(holder: Holder, claimant: Claimant) -> bool | None:
    """Whether the process has ended: as this machine sees it, else as the scheduler says."""
    gone = harness_process.is_gone(holder.harness)
    return claimant.is_over(holder) if gone is None and holder.job else gone


def _sweep(root: Path, claimant: Claimant) -> None:
    """The files of processes that were killed while they claimed. Those of the living stay, and
    for ten minutes those that say nothing: their writers may be about to.
    """
    for path in root.glob(f"{BESIDE_HOLDER}*"):
        # others give theirs up meanwhile, and what cannot be removed is in nobody's way
        with suppress(OSError):
            if _is_left(path, claimant):
                path.unlink()


def _is_left(path: Path, claimant: Claimant) -> bool:
    found = read(path)
    if isinstance(found, Unreadable):
        return time.time() - path.lstat().st_mtime > _WRITTEN_S
    return found is not None and bool(_is_gone(found, claimant))


def _write(path: Path, data: bytes) -> None:
    """A new file, whole on the disk. Anyone who may enter the folder may read who holds it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)


def _link(source: Path, target: Path) -> bool:
    """Give the file a second name; False where something has that name."""
    try:
        os.link(source, target)
    except FileExistsError:
        # over a network the answer to a call that was repeated may speak of our own link
        return source.stat().st_nlink > 1 and _is_same(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _copy(source, target)
    return True


def _is_same(source: Path, target: Path) -> bool:
    try:
        return target.samefile(source)
    except FileNotFoundError:
        return False


def _copy(source: Path, target: Path) -> bool:
    """As `_link` where there are no links. Readers wait a moment for an empty file to be filled."""
    data = source.read_bytes()
    try:
        _write(target, data)
    except FileExistsError:
        return False
    return True
