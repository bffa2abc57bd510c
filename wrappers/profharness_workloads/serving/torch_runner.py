"""Models of torch for the model server: the built-in ParticleNet eagerly or scripted, and
TorchScript files.

Instances on one device share the weights; on a GPU each has a stream of its own, as in Triton's own
torch backend. An execution copies its inputs to the device, runs, and copies the outputs back,
which waits for them.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from profharness_workloads.batch import torch_worker
from profharness_workloads.serving.plan import Served
from profharness_workloads.serving.runner import Arrays, Call, Runner, Signature, placed, probed
from profharness_workloads.shared import inputs, models
from profharness_workloads.shared.protocol import MISSING, Refusal, Settings, Spec


class TorchRunner(Runner):
    """One model, once per device that it is served from."""

    backend = "torch"

    def __init__(self, model: Served, settings: Settings, torch: Any):
        self._torch, spec = torch, model.spec
        if spec.threads:
            torch.set_num_threads(spec.threads)

        def choose(device: str) -> str:
            return torch_worker.chosen_device(torch, device, settings.local_rank)

        chosen = [placed(model, number, choose) for number in range(model.instances)]
        self._places = [torch.device(name) for name, _ in chosen]
        self.device = ",".join(sorted({name for name, _ in chosen}))
        self.fallback = next((reason for _, reason in chosen if reason), "")
        self.versions = torch_worker.versions(torch)
        self._modules: Dict[str, Any] = {}
        for place in self._places:
            if str(place) not in self._modules:
                loaded = torch_worker.load_model(torch, spec, place)
                self._modules[str(place)] = loaded.module
        specs = (
            free_particles(loaded.inputs)
            if models.is_built_in(spec) and not spec.torchscript
            else loaded.inputs
        )
        # a copy of its own, since TorchScript specialises on the first shapes that it sees
        trial = torch_worker.load_model(torch, spec, self._places[0]).module
        self.signature = Signature(
            specs,
            probed(self._call(trial, self._places[0], None), specs, model, output_names(spec)),
        )

    def recipe(self) -> Dict[str, str]:
        """The devices, which instances take in turn."""
        return {"devices": ",".join(str(place) for place in self._places)}

    def instance(self, number: int) -> Call:
        """Computes on its own stream where the device is a GPU, with gradients off."""
        place = self._places[number]
        stream = None if place.type == "cpu" else self._torch.cuda.Stream(place)
        return self._call(self._modules[str(place)], place, stream)

    def _call(self, module: Any, place: Any, stream: Any) -> Call:
        torch = self._torch

        def on_cpu(arrays: Sequence[Any]) -> Arrays:
            with torch.no_grad():
                return tuple(
                    _array(output)
                    for output in _listed(module(*[torch.from_numpy(a) for a in arrays]))
                )

        def on_device(arrays: Sequence[Any]) -> Arrays:
            with torch.no_grad(), torch.cuda.device(place), torch.cuda.stream(stream):
                given = [torch.from_numpy(a).to(place) for a in arrays]
                results = tuple(_array(output) for output in _listed(module(*given)))
                torch.cuda.current_stream(place).synchronize()
                return results

        return on_cpu if place.type == "cpu" else on_device


def _listed(result: Any) -> List[Any]:
    """The tensors of a model's result, in its order."""
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()


def free_particles(specs: Sequence[inputs.TensorSpec]) -> Tuple[inputs.TensorSpec, ...]:
    """The built-in model takes any number of particles and vertices."""
    return tuple(spec._replace(dims=(*spec.dims[:-1], None)) for spec in specs)


def output_names(spec: Spec) -> Sequence[str]:
    """As the Triton configuration beside the file names them; none without one."""
    if models.is_built_in(spec):
        from profharness_workloads.shared import particlenet

        return (particlenet.OUTPUT,)
    folder = os.path.dirname(os.path.abspath(spec.model))
    for candidate in (folder, os.path.dirname(folder)):
        path = os.path.join(candidate, "config.pbtxt")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                configuration = models.parse_pbtxt(file.read(), path)
            return [
                str(one["name"][-1]) for one in configuration.get("output", []) if one.get("name")
            ]
    return ()


def load(model: Served, settings: Settings) -> TorchRunner:
    """Raises Refusal: torch or the device is missing, the file is no model, or compiling was asked
    for.
    """
    if model.spec.compile:
        raise Refusal(
            "--compile is not offered for served models: each batch size that the server forms "
            "would compile anew",
            "leave it out, or scan the compiled model directly",
        )
    if not models.is_built_in(model.spec):
        models.model_file(model.spec)
    try:
        import torch
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "torch cannot be imported by %s: %s" % (sys.executable, error),
            "install torch there",
            MISSING,
        ) from error
    return TorchRunner(model, settings, torch)
