"""Whether this user made a run on this host, and nobody changed since what it starts.

Owner and host name of a folder prove nothing: an archive brings its owner along, a manifest says
what its writer wrote, and in a folder of a group all may write. A seal is a keyed hash (HMAC with
SHA-256, RFC 2104) of all settings of the run, its folder and this host; the key lies in the user's
state folder and is the user's alone.
"""

from __future__ import annotations

import hmac
import os
import socket
import stat
from pathlib import Path

import msgspec

from profharness.rundir.manifest import Manifest

_KEY_BYTES = 32


def key_path() -> Path:
    """Where the key is kept: seal.key under `$XDG_STATE_HOME/profharness`, or under
    `~/.local/state/profharness`.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "profharness" / "seal.key"


def make(root: Path, manifest: Manifest) -> str:
    """The seal of a run of this user on this host; empty where there is no key and none can be
    kept, so that the user is asked later.
    """
    key = _key() or _new_key()
    return _hash(key, root, manifest) if key else ""


def holds(root: Path, manifest: Manifest) -> bool:
    """Whether the manifest in `root` bears a seal of this user, host and folder, and still names
    what it named when it was sealed.
    """
    key = _key()
    if not key or not manifest.seal.isascii():
        return False
    return hmac.compare_digest(manifest.seal, _hash(key, root, manifest))


def _hash(key: bytes, root: Path, manifest: Manifest) -> str:
    said = (
        str(root.resolve()),
        socket.gethostname(),
        manifest.id,
        manifest.created,
        manifest.kind,
        None if manifest.scan is None else (manifest.scan.name, manifest.scan.settings),
    )
    return hmac.digest(key, msgspec.json.encode(said, order="sorted"), "sha256").hex()


def _key() -> bytes:
    """Empty where there is none that only this user could have written or read."""
    try:
        handle = os.open(key_path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, RuntimeError):  # the latter: no home folder
        return b""
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        is_ours = (
            stat.S_ISREG(status.st_mode)
            and status.st_uid == os.geteuid()
            and not stat.S_IMODE(status.st_mode) & 0o077
        )
        key = file.read(_KEY_BYTES + 1) if is_ours else b""
    return key if len(key) == _KEY_BYTES else b""


def _new_key() -> bytes:
    """Of several processes that make the first key at once, all use the one that came first."""
    try:
        path = key_path()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(own, flags, 0o600), "wb") as file:
                file.write(os.urandom(_KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(own, path)
            except FileExistsError:
                pass  # another process was first
            except OSError:
                # no links here: two first keys at once would cost one run its seal
                own.replace(path)
        finally:
            own.unlink(missing_ok=True)
    except (OSError, RuntimeError):
        return b""
    return _key()
