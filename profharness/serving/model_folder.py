"""The model file in a Triton model repository: NAME/config.pbtxt beside NAME/VERSION/model.pt.

Source: triton-inference-server/server, docs/user_guide/model_repository.md. The worker reads the
shapes from the configuration beside the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profharness.errors import UsageError
from profharness.serving import repository

FILES = ("model.pt", "model.onnx", "model.graphdef", "model.savedmodel")
"""What Triton calls a model's file where the configuration names none, as far as it runs here."""

_LISTED = 8


def model_file(model: str) -> str:
    """The file (or SavedModel folder) that `--model` means: its newest version where it names a
    repository, a model's folder in one, a version's folder, or a config.pbtxt; else `model` as it
    is.

    Raises UsageError for a repository of several models and one without a file that can be run
    here, and InputError for a damaged configuration.
    """
    path = Path(model)
    if path.name == repository.FILE and path.is_file():
        return _newest(path.parent)
    if not path.is_dir():
        return model
    if path.resolve().name.isdigit() and (path.resolve().parent / repository.FILE).is_file():
        return _in_version(path, _names(path.resolve().parent)) or _refuse(path)
    if (path / repository.FILE).is_file():
        return _newest(path)
    models = sorted(one.parent for one in path.glob(f"*/{repository.FILE}"))
    if not models:
        return model
    if len(models) > 1:
        names = [str(one) for one in models[:_LISTED]]
        more = f" and {len(models) - _LISTED} more" if len(models) > _LISTED else ""
        raise UsageError(
            f"--model: {model} is a repository of {len(models)} models",
            f"name one of them: {', '.join(names)}{more}",
        )
    return _newest(models[0])


def _newest(folder: Path) -> str:
    """The file of the version with the highest number that has one, as Triton serves it."""
    versions = [one for one in folder.iterdir() if one.name.isdigit() and one.is_dir()]
    names = _names(folder) if versions else ()
    for version in sorted(versions, key=lambda one: int(one.name), reverse=True):
        if file := _in_version(version, names):
            return file
    return _refuse(folder)


def _names(folder: Path) -> tuple[str, ...]:
    """What a version's file may be called, as the configuration in the model's folder says."""
    named = repository.read(folder / repository.FILE).file
    return (named,) if named else FILES


def _in_version(version: Path, names: Sequence[str]) -> str:
    return next((str(version / name) for name in names if (version / name).exists()), "")


def _refuse(folder: Path) -> str:
    """Raises UsageError."""
    raise UsageError(
        f"--model: no version of {folder} holds a file that can be run here",
        f"a model's folder holds VERSION/{' or VERSION/'.join(FILES)}, or what "
        "default_model_filename names; models of other backends are measured in their own server: "
        "--url or --server-command",
    )
