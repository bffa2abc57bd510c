"""Fetch the real AMD tools that tests and a benchmark use: `python tests/tools/get_amd_tools.py
[FOLDER]`.

The Python package `amdsmi` in four versions (with pip, unpacked, never installed), and Debian's
rocm-smi 5.2.3 with its library (with apt-get download and dpkg, unpacked, never installed; only
where the machine has both). Every archive is checked against its hash. FOLDER is .tools/amd in the
checkout unless given. What cannot be had is said, and is no failure: the tests that need it skip
with the reason.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEELS = {
    "6.2.4": "02429befc9f138c3a6bfd0359b44d5f31976804f9818c560f480dab05ac7937a",
    "6.3.3": "b622026e1188deb8dd0fa5f293960528875e168406cf3feec6bcb1a702b2595d",
    "6.4.4": "f7ac841a6919803ab065ca9f60f0d5672bd95df9d00090b107af22648d8f2ef6",
    "7.0.2": "db5aa757f8ed82dfd799c4d39e2828542678dc4e485b0ab7fabe5f398fec5652",
}
PACKAGES = {
    "rocm-smi=5.2.3-2": "054f32d833dda9c2cadb5048a922b2fc233f918f0685d9b1d513ccfc2b22fbf3",
    "librocm-smi64-1=5.2.3-2": "bf78b7308dbd4ec0186139a2cbc65cdeb3bb59233f774ec8d778115807a68fed",
}
DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "amd"


def wheel_folder(folder: Path, version: str) -> Path:
    """Where a version of the package is unpacked; to be put on sys.path."""
    return folder / f"amdsmi-{version}"


def rocm_smi(folder: Path) -> Path:
    """The program, which finds its library two folders up."""
    return folder / "rocm-smi" / "usr" / "libexec" / "rocm_smi" / "rocm_smi.py"


def fetch_wheel(folder: Path, version: str) -> str:
    """What went wrong; empty where it is there."""
    if (wheel_folder(folder, version) / "amdsmi").is_dir():
        return ""
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                temporary,
                f"amdsmi=={version}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        found = list(Path(temporary).glob("*.whl"))
        if done.returncode or len(found) != 1:
            return (
                f"amdsmi {version} cannot be downloaded: "
                f"{(done.stderr.strip().splitlines() or ['no wheel'])[-1]}"
            )
        if _sha256(found[0]) != WHEELS[version]:
            return (
                f"amdsmi {version} is not the archive that was checked: sha256 {_sha256(found[0])}"
            )
        with zipfile.ZipFile(found[0]) as archive:
            archive.extractall(wheel_folder(folder, version))
    return ""


def fetch_rocm_smi(folder: Path) -> str:
    """What went wrong; empty where it is there."""
    if rocm_smi(folder).is_file():
        return ""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return "rocm-smi is Debian's: this machine has no apt-get and dpkg"
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run(
            ["apt-get", "download", *PACKAGES],
            cwd=temporary,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return (
                "rocm-smi cannot be downloaded: "
                f"{(done.stderr.strip().splitlines() or ['apt-get failed'])[-1]}"
            )
        for package, digest in PACKAGES.items():
            (archive,) = Path(temporary).glob(f"{package.partition('=')[0]}_*.deb")
            if _sha256(archive) != digest:
                return f"{package} is not the archive that was checked: sha256 {_sha256(archive)}"
            subprocess.run(["dpkg", "-x", str(archive), str(folder / "rocm-smi")], check=True)
    return ""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    folder.mkdir(parents=True, exist_ok=True)
    for trouble in (*(fetch_wheel(folder, version) for version in WHEELS), fetch_rocm_smi(folder)):
        if trouble:
            print(trouble, file=sys.stderr)
    print(folder)


if __name__ == "__main__":
    main()
