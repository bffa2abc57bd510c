"""Which options rocprofv3 takes in each version of rocprofiler-sdk: one table, from AMD's lists of
changes and the scripts themselves.

Where no release note tells in which of two versions an option came, it stands under the later one,
so that a harness which relies on it earlier is refused.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

Version = tuple[int, ...]
AFTER_1_3_5: Version = (1, 3, 6)
_ALWAYS: Version = (0, 4)


@dataclass(frozen=True)
class Row:
    """Names of one kind. `words` is what follows each: switch, one, some (at least one) or any.

    `until` is the first version that does not have them any more.
    """

    names: str
    words: str = "switch"
    since: Version = _ALWAYS
    until: Version = (99,)
    choices: tuple[str, ...] = ()


ROWS = (
    Row("-r|--runtime-trace -s|--sys-trace --hip-trace --hip-runtime-trace --hip-compiler-trace"),
    Row("--hsa-trace --hsa-core-trace --hsa-amd-trace --hsa-image-trace --hsa-finalizer-trace"),
    Row("--kernel-trace --memory-copy-trace --scratch-memory-trace --marker-trace --rccl-trace"),
    Row("--kokkos-trace --stats -S|--summary -D|--summary-per-domain"),
    Row("-M|--mangled-kernels -T|--truncate-kernels --kernel-rename"),
    Row("--memory-allocation-trace --rocdecode-trace", since=(0, 6)),
    Row("--rocjpeg-trace", since=(1, 0)),
    Row("--kfd-trace --hip-graph-trace --rocshmem-trace", since=(1, 3)),
    Row("--kfd-page-migration-trace --kfd-page-mapping-trace", since=(1, 3)),
    Row("--kfd-queue-trace --kfd-dropped-events-trace", since=(1, 3)),
    Row("--hipfile-trace", since=(1, 3, 5)),
    Row("--ompt-trace", "any", since=(1, 3, 5)),
    Row("--hip-event-trace", since=AFTER_1_3_5),
    Row("-i|--input -d|--output-directory -o|--output-file", "one"),
    Row("--summary-groups --kernel-iteration-range", "some"),
    Row("--summary-output-file --kernel-include-regex --kernel-exclude-regex", "one"),
    Row("-u|--summary-units", "one", choices=("sec", "msec", "usec", "nsec")),
    Row("--log-level", "one", choices=("fatal", "error", "warning", "info", "trace", "env")),
    Row("--perfetto-backend", "one", choices=("inprocess", "system")),
    Row("--perfetto-buffer-fill-policy", "one", choices=("discard", "ring_buffer")),
    Row("--perfetto-buffer-size --perfetto-shmem-size-hint", "one"),
    Row("--list-metrics", until=(0, 6)),
    Row("-L|--list-avail", since=(0, 6)),
    Row("-E|--extra-counters", "one", since=(0, 6)),
    Row("-p|--collection-period", "some", since=(0, 6), until=(1, 0)),
    Row("-P|--collection-period", "some", since=(1, 0)),
    Row(
        "--collection-period-unit",
        "one",
        since=(0, 6),
        choices=("hour", "min", "sec", "msec", "usec", "nsec"),
    ),
    Row("--pc-sampling-beta-enabled", since=(0, 6)),
    Row("--pc-sampling-unit", "one", since=(0, 6), choices=("instructions", "cycles", "time")),
    Row("--pc-sampling-method", "one", since=(0, 6), until=(1, 0), choices=("host_trap",)),
    Row("--pc-sampling-method", "one", since=(1, 0), choices=("stochastic", "host_trap")),
    Row("--pc-sampling-interval", "one", since=(0, 6)),
    Row(
        "--output-config --selected-regions --group-by-queue --disable-signal-handlers", since=(1,)
    ),
    Row("-v|--version --att", since=(1, 0)),
    Row("--att-library-path --att-perfcounters", "some", since=(1, 0)),
    Row("--att-target-cu --att-simd-select --att-buffer-size", "one", since=(1, 0)),
    Row("--att-shader-engine-mask --att-gpu-index --att-perfcounter-ctrl", "one", since=(1, 0)),
    Row("--att-activity --att-serialize-all", "one", since=(1, 0)),
    Row("-A|--agent-index", "one", since=(1,), choices=("absolute", "relative", "type-relative")),
    Row("--minimum-output-data --rocm-root --sdk-version --sdk-soversion", "one", since=(1, 0)),
    Row("--preload", "any", since=(1, 0)),
    Row("-p|--pid|--attach --attach-duration-msec --profile-mpi-ranks", "one", since=(1, 1)),
    Row("--spm", "some", since=(1, 3, 2)),
    Row("--spm-sample-interval --spm-sample-interval-unit", "one", since=(1, 3, 2)),
    Row("--spm-beta-enabled", since=(1, 3, 2)),
    Row("--replay-mode", "one", since=AFTER_1_3_5, choices=("kernel", "application")),
    Row("--kernel-replay-beta-enabled", since=AFTER_1_3_5),
)


def parser(own: Version) -> argparse.ArgumentParser:
    """What this version takes, in its own manner: no abbreviations, and from 1.0 on a switch may be
    followed by a truth value.
    """
    made = argparse.ArgumentParser(prog="rocprofv3", allow_abbrev=False)
    for row in ROWS:
        if row.since <= own < row.until:
            for names in row.names.split():
                _add(made, names.split("|"), row, own)
    late = own >= (1, 0)
    made.add_argument(
        *(["-f"] if late else []),
        "--output-format",
        nargs="+",
        choices=("csv", "json", "pftrace", "otf2", *(("rocpd",) if late else ())),
        default=["rocpd"] if late else ["csv"],
    )
    if own >= (1, 3):  # each further one is a replay of the application
        made.add_argument("--pmc", nargs="*", action="append", default=[])
    elif own >= (0, 5):
        made.add_argument("--pmc", nargs="*", default=[])
    return made


def _add(made: argparse.ArgumentParser, names: list[str], row: Row, own: Version) -> None:
    if row.words == "switch" and own < (1, 0):
        made.add_argument(*names, action="store_true")
    elif row.words == "switch":
        made.add_argument(*names, nargs="?", const=True, default=False, type=_truth)
    elif row.words == "one":
        made.add_argument(*names, choices=row.choices or None)
    else:
        made.add_argument(*names, nargs="+" if row.words == "some" else "*")


def _truth(text: str) -> bool:
    if text.lower() not in ("1", "0", "yes", "no", "on", "off", "true", "false"):
        raise argparse.ArgumentTypeError(f"invalid truth value {text!r}")
    return text.lower() in ("1", "yes", "on", "true")


def taken(own: Version) -> frozenset[str]:
    """All names of options, the long and the short ones."""
    return frozenset(name for action in parser(own)._actions for name in action.option_strings) - {
        "-h",
        "--help",
    }
