"""Configurations of a served model as it was measured, for a repository of another Triton: for the
Python backend, which `profharness serve --repository` fills with the model, and for Triton's own
backend of the model's framework.
"""

from __future__ import annotations

from collections.abc import Mapping

from profharness.serving.model_config import ModelConfig, config_text
from profharness.serving.ready import Model

OWN_BACKENDS: Mapping[str, tuple[str, str]] = {
    "onnxruntime": ("onnxruntime", "model.onnx"),
    "torch": ("pytorch", "model.pt"),
    "tensorflow": ("tensorflow", "model.savedmodel"),
}
"""Triton's backend of each framework, and its usual file of the model."""


def configurations(model: Model, name: str) -> dict[str, str]:
    """The text of config.pbtxt by Triton's backend, the Python backend first; `name` is the model's
    there.
    """
    backends = ["python"]
    if model.backend in OWN_BACKENDS:
        backends.append(OWN_BACKENDS[model.backend][0])
    return {backend: _text(model, name, backend) for backend in backends}


def _text(model: Model, name: str, backend: str) -> str:
    return config_text(
        ModelConfig(
            name=name,
            backend=backend,
            inputs=model.inputs,
            outputs=model.outputs,
            max_batch_size=model.max_batch_size,
            instances=model.instances or 1,
            kind="cpu" if model.device == "cpu" or backend == "python" else "auto",
            queue_delay_us=model.queue_delay_us,
        )
    )
