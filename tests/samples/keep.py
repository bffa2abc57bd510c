"""`python -m tests.samples.keep RUN NAME`: keep a run directory as a sample, with its figures.

What is made again from the rest is left out, the paths of this machine are renamed, and a run in
which something looks secret is refused.
"""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.samples.figures import figures_of

SAMPLES = Path(__file__).resolve().parent
MADE_AGAIN = ("report.html", "merged.pftrace", "summary.json", "hotspots.csv")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOST = 100_000  # bytes of a sample


def main(run: Path, name: str) -> None:
    """Write `NAME.tar.xz` and `NAME.json` beside this file. Raises SystemExit where it cannot."""
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place) / name
        shutil.copytree(run, kept, symlinks=True)
        for path in (*map(kept.joinpath, MADE_AGAIN), *kept.glob("telemetry/*.parquet")):
            path.unlink(missing_ok=True)
        renamed = _names(run)
        for path in kept.rglob("*"):
            if path.is_file():
                _rename(path, renamed)
        _require_no_secret(kept)
        packed = SAMPLES / f"{name}.tar.xz"
        with tarfile.open(packed, "w:xz", preset=9) as archive:
            archive.add(kept, name, filter=_nobodys)
        if packed.stat().st_size > _MOST:
            raise SystemExit(f"{name} has {packed.stat().st_size} bytes of at most {_MOST}")
        figures = json.dumps(figures_of(kept), indent=1, sort_keys=True)
        (SAMPLES / f"{name}.json").write_text(figures + "\n")


def _names(run: Path) -> dict[bytes, bytes]:
    """What is renamed, longest first: of the same length, since some of it stands in binary files
    behind its length.
    """
    checkout = SAMPLES.parent.parent
    places = {str(run.resolve().parent), str(checkout), str(checkout.parent), str(Path.home())}
    words = {place: ("/home/user" + "/sample" * len(place))[: len(place)] for place in places}
    if len(host := socket.gethostname()) > 3:
        words[host] = ("node" + "0" * len(host))[: len(host)]
    words[BOOT_ID.read_text().strip()] = "00000000-0000-0000-0000-000000000001"
    return {old.encode(): words[old].encode() for old in sorted(words, key=len, reverse=True)}


def _rename(path: Path, names: dict[bytes, bytes]) -> None:
    data = path.read_bytes()
    for old, new in names.items():
        data = data.replace(old, new)
    path.write_bytes(data)


def _require_no_secret(kept: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "profharness", "scrub", "--dry-run", kept],
        capture_output=True,
        text=True,
        check=False,  # it ends with 1 since it cannot look into samples of telemetry
    )
    if "nothing that looks secret" not in said.stdout:
        raise SystemExit(said.stdout)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = "user"
    return member


def unpacked(name: str, into: Path) -> Path:
    """The run directory of a sample, in a folder of the caller's."""
    data = io.BytesIO((SAMPLES / f"{name}.tar.xz").read_bytes())
    with tarfile.open(fileobj=data, mode="r:xz") as archive:
        archive.extractall(into, filter="data")
    return into / name


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
