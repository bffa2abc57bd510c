"""Fetch Triton's perf_analyzer: `python tests/tools/get_perf_analyzer.py [FOLDER]`.

The package of its name holds no binary, but the Linux wheels of tritonclient do; 2.51.0 is the
newest that starts with glibc 2.34. The wheel is downloaded, never installed; wheel and binary are
checked against the hashes below. Two libraries that the binary wants are linked from the bundle of
nvidia-pytriton, where it is installed (the extra `triton`). FOLDER is .tools/perf-analyzer in the
checkout unless given.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "tritonclient==2.51.0"
PLATFORM = "manylinux1_x86_64"
WHEEL_SHA256 = "c485bb0123bdf310f90bc8b03d3489b28df2ffed55b30c7eee0b795b48113d52"
BINARY_SHA256 = "a8e3fa6d2fcd535770f18fa3c9baf21aee85697352637d24c6b2818401c95a34"
INSIDE = "tritonclient-2.51.0.data/data/bin/perf_analyzer"
LIBRARIES = {"libb64.so.0d": "libb64-*.so.0d", "libcudart.so.12": "libcudart-*.so.12*"}
DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "perf-analyzer"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_complete(folder: Path) -> bool:
    binary = folder / "perf_analyzer"
    return (
        binary.is_file()
        and sha256(binary) == BINARY_SHA256
        and all((folder / name).exists() for name in LIBRARIES)
    )


def fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                f"--platform={PLATFORM}",
                "--python-version=3.11",
                "--dest",
                temporary,
                PACKAGE,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (wheel,) = Path(temporary).glob("*.whl")
        if sha256(wheel) != WHEEL_SHA256:
            sys.exit(f"{PACKAGE} is not the wheel that was checked: sha256 {sha256(wheel)}")
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "perf_analyzer"
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read(INSIDE))
        target.chmod(0o755)


def link_libraries(folder: Path) -> None:
    """Links beside the binary; the systems' own libraries serve where there is no bundle."""
    found = importlib.util.find_spec("pytriton")
    if found is None or found.origin is None:
        sys.exit(
            "the libraries that perf_analyzer wants come with nvidia-pytriton: "
            "install the extra `triton`"
        )
    bundle = Path(found.origin).parent.parent / "nvidia_pytriton.libs"
    for name, pattern in LIBRARIES.items():
        (library,) = bundle.glob(pattern)
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(library)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    if not is_complete(folder):
        fetch(folder)
        link_libraries(folder)
    print(folder)


if __name__ == "__main__":
    main()
