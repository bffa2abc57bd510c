"""What AMD's data centre tool (RDC) reads: `rdci dmon`, asked for one table at a time.

Its daemon counts in windows of about 10 ms, so a value is a keyhole and no mean. The fields are
asked for by name, since their numbers change from release to release, and the table has them in the
order in which they were asked for. A device has the number of its PCI address's place.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess

from profharness.telemetry.sources.amd.exporter.answer import ExporterError
from profharness.telemetry.sources.amd.exporter.known import RDC, Published

NAME = "rdci"
FIELDS = {
    "RDC_FI_PROF_SM_ACTIVE": "gpu_prof_sm_active",
    "RDC_FI_PROF_TENSOR_ACTIVE_PERCENT": "gpu_prof_tensor_active_percent",
    "RDC_FI_PROF_OCCUPANCY_PERCENT": "gpu_prof_occupancy_percent",
    "RDC_FI_PROF_GPU_UTIL_PERCENT": "gpu_prof_gui_util_percent",
}
"""Each field, and the gauge that the Device Metrics Exporter makes of it: in percent, as it is."""
WINDOW_MS = 1000  # after which the table is printed; the daemon has then read each field once
SLACK_S = 4.0  # beyond the window, for the daemon
_LET_GO_S = 1.0


def parse(text: str) -> str | None:
    """The daemon's `HOST:PORT`, empty for the one of this node; None where another exporter is
    named. Raises ValueError.
    """
    name, colon, host = text.partition(":")
    if name != NAME:
        return None
    if colon and not (host and host.rpartition(":")[2].isdecimal() and not host.startswith("-")):
        raise ValueError("a daemon of RDC is named as rdci or rdci:HOST:PORT")
    return host


def ask(host: str) -> Published:
    """One table. Raises ExporterError."""
    program = shutil.which(NAME) or f"{os.environ.get('ROCM_PATH', '/opt/rocm')}/bin/{NAME}"
    words = [program, "dmon", "-u", "-e", ",".join(FIELDS), "-c", "1", "-d", str(WINDOW_MS)]
    words += ["--host", host] if host else []
    try:
        started = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        raise ExporterError(f"rdci cannot be started ({error.strerror})") from None
    try:
        out, _ = started.communicate(timeout=WINDOW_MS / 1e3 + SLACK_S)
    except subprocess.TimeoutExpired:
        _end(started)
        raise ExporterError(f"rdci gave no table within {WINDOW_MS / 1e3 + SLACK_S:g} s") from None
    return table(out.decode(errors="replace"), started.returncode)


def _end(started: subprocess.Popen[bytes]) -> None:
    """SIGINT first: it then takes its groups of devices and fields back from the daemon."""
    started.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.communicate(timeout=_LET_GO_S)
        return
    started.kill()
    started.communicate()


def table(text: str, status: int = 0) -> Published:
    """The rows under the headings that begin with GPU; a field that is not there says N/A. Raises
    ExporterError where there is no value at all.
    """
    values: dict[int, dict[str, float]] = {}
    for line in text.splitlines():
        number, *cells = line.split() or [""]
        if number.isdecimal() and len(cells) == len(FIELDS):
            found = {
                gauge: float(cell)
                for gauge, cell in zip(FIELDS.values(), cells, strict=True)
                if cell.replace(".", "", 1).isdecimal()
            }
            if found:
                values[int(number)] = found
    if values:
        return Published(RDC, values)
    said = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    raise ExporterError(
        f"rdci printed no value of {', '.join(FIELDS)} (exit status {status}"
        f"{f': {said[:120]}' if said else ''})"
    )
