"""What the sampler is asked to do: the JSON file that the harness writes for it."""

from __future__ import annotations

import json
from typing import NamedTuple

MAX_HZ = 1000.0


class Spec(NamedTuple):
    """`output_dir` and `host` give the file names; an empty `sources` asks for clock readings only.

    The harness appends each pid that it wants followed, with its descendants, as a line to
    `roots_file` (decimal, each line ended by a newline; the file may appear later). The sampler
    ends when `parent_pid` does; 0 means no parent. `counters_hz` is how often the source
    `device-counters` counts, `counting_gate` the file whose presence says when (always, without);
    `exporter` is the address that `counters-exporter` asks. `caps_file` names the old power caps
    that are set again when the sampler ends.
    """

    output_dir: str
    host: str
    hz: float = 10.0
    roots_file: str = ""
    parent_pid: int = 0
    sources: tuple[str, ...] = ("cpu",)
    sysfs: str = "/sys"
    counters_hz: float = 0.0
    counting_gate: str = ""
    exporter: str = ""
    caps_file: str = ""


def parse_spec(text: str) -> Spec:
    """Raises ValueError, naming the field, for JSON that is not a specification. Unknown fields are
    ignored.
    """
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("the specification must be a JSON object")
    for name in ("output_dir", "host"):
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise ValueError(f"{name!r} must be a text")
    hz = fields.get("hz", 10.0)
    if isinstance(hz, bool) or not isinstance(hz, (int, float)) or not 0 < hz <= MAX_HZ:
        raise ValueError(f"'hz' must be above 0 and at most {MAX_HZ:g}, not {hz!r}")
    sources = fields.get("sources", ["cpu"])
    if not isinstance(sources, list) or not all(isinstance(name, str) for name in sources):
        raise ValueError("'sources' must be a list of names")
    return Spec(
        fields["output_dir"],
        fields["host"],
        float(hz),
        str(fields.get("roots_file") or ""),
        int(fields.get("parent_pid") or 0),
        tuple(sources),
        str(fields.get("sysfs") or "/sys"),
        float(fields.get("counters_hz") or 0.0),
        str(fields.get("counting_gate") or ""),
        str(fields.get("exporter") or ""),
        str(fields.get("caps_file") or ""),
    )
