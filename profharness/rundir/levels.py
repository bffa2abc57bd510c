"""One level of load on a server, as the load generator reports it: what was asked, when the window
was, what the server counted.

Typed records only, shared by the workers' protocol, the manifest and the analysis. Times are
CLOCK_MONOTONIC ns, lengths ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Mode = Literal["closed", "open"]
TOGETHER, SPREAD = "together", "spread"
"""The targets that stand for all models on one server at once: on one device, and each on a device
of its own.
"""
SHARED = (TOGETHER, SPREAD)


def ragged_label(label: str, way: str, ways: Sequence[str]) -> str:
    """A target's label among those of several ways of ragged batching: `torch@triton`, or
    `torch@tagger.triton` where it names a model too. Of one way it stays as it is.
    """
    return label if len(ways) == 1 else f"{label}{'.' if '@' in label else '@'}{way}"


class ServerStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much a model's statistics grew over the window (KServe statistics extension): sums over
    requests, in ns.

    `count` inferences in `exec_count` executions; `batch_sizes` maps the items of an execution to
    how often it ran.
    """

    queue_ns: int = 0
    compute_input_ns: int = 0
    compute_infer_ns: int = 0
    compute_output_ns: int = 0
    success: int = 0
    count: int = 0
    exec_count: int = 0
    batch_sizes: dict[str, int] = {}


class NetworkBytes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes between clients and server over the window: `rx` what the clients got, `tx` what they
    sent.
    """

    rx: int = 0
    tx: int = 0


class Level(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The report on one level. `requests` ended in the window, `failed` of them without an answer.

    `concurrency` is what a closed loop held in flight, `rate` what an open loop meant to send, in
    requests/s. `clients` are processes, `cpu_ns` their CPU time in the window, `late_sends`
    requests sent later than meant. `server_stats` by model and `server_cpu_ns` are None where the
    server does not tell; neither `instances` (0) of its model, nor the items that it puts together
    at most (`gathers`, None). `models` is for a load on several models at once: the target that
    each client process asks, in the order of the processes.
    """

    mode: Mode = "closed"
    concurrency: int | None = None
    rate: float | None = None
    window_start_ns: int
    window_end_ns: int
    requests: int = 0
    failed: int = 0
    clients: int = 1
    cpu_ns: int | None = None
    late_sends: int = 0
    steady: bool = True
    warmup_ns: int = 0
    server_stats: dict[str, ServerStats] | None = None
    server_cpu_ns: int | None = None
    network_bytes: NetworkBytes | None = None
    models: tuple[str, ...] = ()
    instances: int = 0
    gathers: int | None = None

    @property
    def window_ns(self) -> int:
        """Length of the window."""
        return self.window_end_ns - self.window_start_ns


class LevelResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a search for the knee must know of a measured level. Rates in items/s, times in ms,
    shares between 0 and 1.

    `percentiles_ms` are of the corrected latency (done - intended) by name, such as p99; one is
    left out where too few requests lie beyond it.
    """

    throughput: float = 0.0
    throughput_sem: float | None = None
    latency_ms: float | None = None
    percentiles_ms: dict[str, float] = {}
    failed_share: float = 0.0
