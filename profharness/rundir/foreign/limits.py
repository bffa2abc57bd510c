"""How much of a run directory is read at most, each number with its reason.

A run directory may come from anywhere. What lies beyond one of these numbers is a fault of the
file, told with its name, and never an allocation that ends the machine.
"""

from __future__ import annotations

WHOLE = (1 << 62) - 1
"""The largest whole number: the difference of two such numbers still fits into 64 bits, so that no
time or count wraps round. As a time it is 146 years."""

MANIFEST_BYTES = 512 << 20
"""A manifest of 2,000 served points has 6 MB, one of 5,000 ranks 20 MB, one with the clocks of many
nodes 95 MB; earlier versions wrote 240 bytes for each second of each node, however many."""

RECORDS = {
    "points": 20_000,
    "passes": 1_000,
    "artifacts": 1_000_000,
    "clocks": 2_000_000,
    "processes": 200_000,
    "rank_outcomes": 200_000,
    "nodes": 50_000,
    "layers": 1_000,
    "findings": 50_000,
}
"""Records of each kind in a manifest: ten times what the largest runs known to us hold."""

RANKS = 10_000_000
"""Ranks of one run, and the number of a rank: a hundred times the largest machines."""

SMALL_BYTES = 4 << 20
"""A file with one JSON object: a sidecar, a sampler's last word, an outcome of a rank."""

SIDECAR_BYTES = 64 << 20
"""What a hook writes beside its file: the ranks of thousands of process groups stand in it."""

LINES_BYTES = 256 << 20
"""A file of lines that is held in memory: trials, steps, clock readings, calibrations."""

RAW_BYTES = 16 << 30
"""Raw requests and executions of one process: 64 bytes each, so that it holds 250 million."""

PATTERN_LENGTH = 500
"""Characters of a regular expression that a manifest states."""

NAME_LENGTH = 255
PATH_LENGTH = 4096
"""Bytes of a file's name and of a path, as Linux has them (limits.h)."""

TABLE_ROWS = 2_000_000
"""Rows that a table may have besides one for each of its bytes: our own tables need three bytes and
more for a row, and a row takes some 80 bytes of memory."""

REQUEST_ROWS = 250_000
"""The same for a table of requests, whose times are never the same: each row takes three bytes and
more, and is written, sorted and drawn by itself."""

TABLE_BYTES = 16 << 30
"""A table of requests or samples: an hour of 1,000 samples a second of 200 series has 3 GB."""

PAGE_BYTES = 256 << 20
"""Decompressed bytes of one page of a table: writers cut pages at 1 MiB."""

INFLATED_BYTES = 64 << 20
INFLATED_RATIO = 50
"""Decompressed bytes of a gzipped file of samples, besides this many for each of its bytes: rows of
a sampler compress to a tenth."""

HOSTS, HOST_BYTES = 512, 8 << 10
"""Files of samplers in a run, besides one for so many of their bytes. Each host has one: the list
of its columns alone is longer with eight devices, and so are a few seconds of a host without any.
"""

TELEMETRY_COLUMNS = 20_000
"""Columns in the rows of a sampler: eight devices with all their counters have some 2,000."""

TELEMETRY_READS = 8
"""How often the values of a row may read its bytes, on average. Most bytes are read once; a mean
over the dies of a device reads a block, and several counters are divided by the same cycles."""

TELEMETRY_VALUES, VALUES_GROWTH = 4_000_000, 6
"""Values of a sampler's file, besides so many for each of its bytes. A value has eight bytes there,
or two in a driver's table, and a table in which nothing changes is compressed to a tenth and less.
In memory a value takes 36 bytes.
"""

NUMBER = 1e60
"""The largest number with a fraction: its square still is one."""
