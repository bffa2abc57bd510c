"""Telemetry of one host as a Parquet table: at_ns, until_ns, device, metric, value, and what a
reader must know of it.

`device` is the position in the list of devices in the file's metadata (key `profharness.telemetry`,
JSON), -1 for the host. Times stay on the clock that the sampler stamps; the metadata name it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from profharness.trace.model import Trace
from profharness.units import format_bytes

VERSION = 1
METADATA_KEY = b"profharness.telemetry"


def write(trace: Trace, path: Path) -> str:
    """Write the samples of a trace of one source, replacing `path` in one step; returns the size in
    words.

    Raises ValueError when the trace has several sources: their clocks may differ.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if len(trace.sources) != 1:
        raise ValueError(f"one source is needed, not {len(trace.sources)}")
    samples = trace.samples
    used, codes = np.unique(samples.metric, return_inverse=True)
    table = pa.table(
        {
            "at_ns": pa.array(samples.at_ns),
            "until_ns": pa.array(samples.until_ns),
            "device": pa.array(samples.device),
            "metric": pa.DictionaryArray.from_arrays(
                pa.array(codes.astype(np.int32), pa.int32()),
                pa.array(trace.strings.decode(used), pa.string()),
            ),
            "value": pa.array(samples.value),
        }
    )
    table = table.replace_schema_metadata({METADATA_KEY: _facts(trace)})
    temporary = path.with_name(f".{path.name}.partial")
    pq.write_table(
        table,
        temporary,
        compression="zstd",
        use_dictionary=["metric", "device"],
        column_encoding={"at_ns": "DELTA_BINARY_PACKED", "until_ns": "DELTA_BINARY_PACKED"},
    )
    temporary.replace(path)
    return format_bytes(path.stat().st_size)


def _facts(trace: Trace) -> bytes:
    source = trace.sources[0]
    return msgspec.json.encode(
        {
            "v": VERSION,
            "host": source.host,
            "clock": source.clock.value,
            "pid": source.pid,
            "tool_version": source.tool_version,
            "details": source.details,
            "devices": [
                {
                    "number": device.index,
                    "identity": device.identity,
                    "name": device.name,
                    "vendor": device.vendor,
                }
                for device in trace.devices
            ],
            "problems": [
                (problem.severity, problem.source, problem.count, problem.message)
                for problem in trace.problems
            ],
        }
    )
