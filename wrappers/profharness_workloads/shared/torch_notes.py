"""What a point of torch is to know of its model and its device's memory."""

from __future__ import annotations

from typing import Any, Dict

KINDS = {
    "torch.float64": "fp64",
    "torch.float32": "fp32",
    "torch.float16": "fp16",
    "torch.bfloat16": "bf16",
}


def weight_notes(module: Any) -> Dict[str, str]:
    """Bytes of parameters and buffers, which every pass must read, and the type that most of them
    are in.
    """
    sizes: Dict[str, int] = {}
    for tensor in list(module.parameters()) + list(module.buffers()):
        kind = str(tensor.dtype)
        sizes[kind] = sizes.get(kind, 0) + tensor.numel() * tensor.element_size()
    if not sizes:
        return {}
    notes = {"weight_bytes": str(sum(sizes.values()))}
    largest = max(sizes, key=lambda kind: sizes[kind])
    if largest in KINDS:
        notes["dtype"] = KINDS[largest]
    return notes


def peak_memory(torch: Any, place: Any) -> Dict[str, str]:
    """Peak device memory that torch held since the last point, in bytes."""
    if place.type == "cpu":
        return {}
    peak = torch.cuda.max_memory_reserved(place)
    torch.cuda.reset_peak_memory_stats(place)
    return {"peak_memory_bytes": str(peak)}
