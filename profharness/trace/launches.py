"""The host call that launched each kernel, by correlation id: the join that clock causality and points rest on. Pure."""

from __future__ import annotations

import numpy as np

from profharness.trace.model import I64, NULL, Api, Kernels, Trace


def launching_calls(trace: Trace) -> I64:
    """For each kernel the row in `api` of the call with its correlation id, NULL without one.

    Ids are unique within a source and process. Of several calls with one id (runtime and driver) the earliest counts. A
    tool that writes kernels and calls of a process to two files is joined across them.
    """
    kernels, api = trace.kernels, trace.api
    usable = np.flatnonzero(api.correlation != NULL)
    if not len(usable) or not len(kernels):
        return np.full(len(kernels), NULL, np.int64)
    call_key, kernel_key = _keys(trace, kernels, api)
    order = usable[np.lexsort((api.start_ns[usable], call_key[usable]))]
    keys = call_key[order]
    at = np.minimum(np.searchsorted(keys, kernel_key), len(keys) - 1)
    found = (keys[at] == kernel_key) & (kernels.correlation != NULL)
    return np.where(found, order[at], NULL)


def _keys(trace: Trace, kernels: Kernels, api: Api) -> tuple[I64, I64]:
    """One number per (owner, process, id) for calls and kernels; the process counts where both sides know it."""
    owner = _owners(trace)
    call_owner, kernel_owner = owner[api.source], owner[kernels.source]
    unsure = np.zeros(len(owner), np.bool_)
    unsure[call_owner[api.pid == NULL]] = True
    unsure[kernel_owner[kernels.pid == NULL]] = True
    ranks = np.zeros(len(api) + len(kernels), np.int64)
    for of_calls, of_kernels in ((call_owner, kernel_owner),
                                 (np.where(unsure[call_owner], NULL, api.pid), np.where(unsure[kernel_owner], NULL, kernels.pid)),
                                 (api.correlation, kernels.correlation)):
        # Each step is smaller than (rows)², so the product cannot overflow.
        distinct, digit = np.unique(np.concatenate((of_calls, of_kernels)), return_inverse=True)
        ranks = np.unique(ranks * len(distinct) + digit, return_inverse=True)[1]
    return ranks[:len(api)], ranks[len(api):]


def _owners(trace: Trace) -> I64:
    """For each source the one that holds its host calls: itself, or another of the same pass, layer, host and process."""
    owner = np.arange(len(trace.sources), dtype=np.int64)
    has_calls = np.zeros(len(owner), np.bool_)
    has_calls[trace.api.source] = True
    holders = {(source.pass_name, source.layer, source.host, source.pid): position
               for position, source in enumerate(trace.sources) if has_calls[position] and source.pid is not None}
    for position, source in enumerate(trace.sources):
        if not has_calls[position] and source.pid is not None:
            owner[position] = holders.get((source.pass_name, source.layer, source.host, source.pid), position)
    return owner
