"""`--site lumi`: the defaults of a site under what was asked. Pure."""

from __future__ import annotations

import msgspec

from profharness.node.sites import Site, masks
from profharness.options.request import Request

_BIND = "--cpu-bind"


def at_site(request: Request, site: Site) -> Request:
    """The request with the site's defaults: a value that was given stays, and of lists the site's
    come first, so that the user's win. An image that the site names is replaced by its path.

    Ranks of whole nodes, one for each device, are bound to the cores next to it. Raises UsageError
    where a value of the site does not pass the checks of its option.
    """
    changed: dict[str, object] = {}
    if request.launcher != "local":
        for name in site.settings.__struct_fields__:
            theirs, ours = getattr(site.settings, name), getattr(request, name)
            if isinstance(theirs, tuple):
                changed[name] = (*theirs, *ours)
            elif ours in ("", None):
                changed[name] = theirs
        words = (*_bound(request, site), *site.settings.launcher_arg, *request.launcher_arg)
        changed["launcher_arg"] = words
    image = site.images.get(request.container)
    if image is not None:
        gpu = image.gpu if request.container_gpu == "auto" else request.container_gpu
        binds = (f"--bind={','.join(image.binds)}",) if image.binds else ()
        changed |= {
            "container": image.path,
            "container_init": request.container_init or image.init,
            "container_arg": (*binds, *request.container_arg),
            "container_gpu": gpu,
        }
    return msgspec.structs.replace(request, **changed)


def _bound(request: Request, site: Site) -> tuple[str, ...]:
    """Not where the user binds by an option of their own."""
    count = len(site.devices.cores)
    asked = any(word.startswith(_BIND) for word in (*request.launcher_arg, *request.sbatch_arg))
    if asked or not count or request.ranks != (request.nodes or 1) * count:
        return ()
    return (f"{_BIND}=mask_cpu:{','.join(masks(site.devices))}",)
