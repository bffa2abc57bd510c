"""Where perf_analyzer is on this machine, and with which libraries it starts.

In this order: $PROFHARNESS_PERF_ANALYZER (a file, or a command that ends in it, such as one inside
a container), an Apptainer image of the spec, PATH, and the folder that `make perf-analyzer` fills.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import Mapping, NamedTuple, Optional, Tuple

from profharness_workloads.shared.protocol import MISSING, Refusal, plain_reason

VARIABLE = "PROFHARNESS_PERF_ANALYZER"
NAME = "perf_analyzer"
FETCHED = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))),
    ".tools",
    "perf-analyzer",
)
HINT = (
    "`make perf-analyzer` fetches it, $%s names it, and an Apptainer image of Triton's SDK holds it"
    % VARIABLE
)
_LIMIT_S = 60.0


class Binary(NamedTuple):
    """A command prefix, and the folder of libraries that go with it ("" for none)."""

    argv: Tuple[str, ...]
    libraries: str = ""

    def environment(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """A copy of `environ` in which its own libraries come first on the loader's path."""
        if not self.libraries:
            return dict(environ)
        before = environ.get("LD_LIBRARY_PATH", "")
        return dict(environ, LD_LIBRARY_PATH=self.libraries + (":" + before if before else ""))


def find(environ: Mapping[str, str], image: str = "") -> Binary:
    """Raises Refusal, with the places that were looked at, when there is none."""
    named = environ.get(VARIABLE, "")
    if named:
        return _beside(tuple(shlex.split(named)))
    if image:
        apptainer = shutil.which("apptainer") or shutil.which("singularity")
        if apptainer is None:
            raise Refusal(
                "the image %s needs apptainer, which is not on PATH" % image, HINT, MISSING
            )
        return Binary((apptainer, "exec", image, NAME))
    path: Optional[str] = shutil.which(NAME, path=environ.get("PATH")) or shutil.which(
        os.path.join(FETCHED, NAME)
    )
    if path is None:
        raise Refusal("perf_analyzer is neither on PATH nor in %s" % FETCHED, HINT, MISSING)
    return _beside((path,))


def _beside(argv: Tuple[str, ...]) -> Binary:
    """Libraries that lie in the binary's own folder are found there: the wheel's binary lacks two
    of them.
    """
    folder = os.path.dirname(os.path.abspath(argv[0]))
    return Binary(argv, folder if os.path.exists(os.path.join(folder, "libb64.so.0d")) else "")


def version(binary: Binary, environ: Mapping[str, str]) -> str:
    """Its version. Raises Refusal when it does not start, with the loader's words."""
    try:
        done = subprocess.run(
            [*binary.argv, "--version"],
            env=dict(binary.environment(environ)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refusal(
            "%s does not start (%s)" % (" ".join(binary.argv), plain_reason(error)), HINT, MISSING
        ) from error
    text = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        last = text.splitlines()[-1] if text else "exit status %d" % done.returncode
        raise Refusal("%s does not start (%s)" % (" ".join(binary.argv), last), HINT, MISSING)
    return text.partition("Version")[2].split("(")[0].strip() or text
