"""torch.autocast around a model that we run: products in bfloat16 or float16, answers in float32 as
without it. Imported where torch is.
"""

from __future__ import annotations

from typing import Any

import torch

from profharness_workloads.shared.protocol import Refusal

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class UnderAutocast(torch.nn.Module):
    """The model, called under autocast of one type."""

    def __init__(self, inner: Any, device_type: str, dtype: Any):
        super().__init__()
        self.inner = inner
        self._device_type, self._dtype = device_type, dtype

    def forward(self, *tensors: Any) -> Any:
        with torch.autocast(self._device_type, dtype=self._dtype):
            return _as_without(self.inner(*tensors), self._dtype)


def under_autocast(module: Any, asked: str, device_type: str) -> Any:
    """The module itself where autocast is off. Raises Refusal for a type that there is not."""
    if asked == "off":
        return module
    if asked not in TYPES:
        raise Refusal("autocast: there is no type %r" % asked, "use off, bf16 or fp16")
    return UnderAutocast(module, device_type, TYPES[asked]).eval()


def _as_without(result: Any, dtype: Any) -> Any:
    """Answers in the type of the weights: numpy and the server's declared outputs know no
    bfloat16.
    """
    if isinstance(result, dict):
        return {name: _as_without(one, dtype) for name, one in result.items()}
    if isinstance(result, (tuple, list)):
        return tuple(_as_without(one, dtype) for one in result)
    return result.float() if getattr(result, "dtype", None) == dtype else result
