"""Which scripts the page carries, where each is from, and its text, checked against its hash."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from profharness.errors import Unavailable


@dataclass(frozen=True)
class Script:
    """One file of a published package, unchanged, beside its licence and notice; `sha256` is that
    of its bytes.
    """

    name: str
    version: str
    source: str
    licence: str
    file: str
    sha256: str


ECHARTS = Script(
    name="Apache ECharts",
    version="6.1.0",
    source="npm package echarts 6.1.0, dist/echarts.min.js",
    licence="Apache-2.0",
    file="echarts.min.js",
    sha256="b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0",
)
PAKO = Script(
    name="pako",
    version="2.2.0",
    source="npm package pako 2.2.0, dist/pako_inflate.min.js",
    licence="MIT AND Zlib",
    file="pako_inflate.min.js",
    sha256="bbcaa5e569e289b4904c7e12c45b6785bc41745977091d105086a6cbb0faf832",
)


@cache
def script_text(script: Script) -> str:
    """The text of the script. Raises Unavailable where the file is not the published one: a page
    carries no script that somebody changed.
    """
    path = files(__package__) / script.file
    content = path.read_bytes()
    if sha256(content).hexdigest() != script.sha256:
        raise Unavailable(
            f"{path} is not {script.name} {script.version} as it was published",
            "install profharness again",
        )
    return content.decode()
