"""A certificate as JSON, with its digest in it."""

from __future__ import annotations

import msgspec

from profharness.analysis.certificate.document import Certificate, sealed
from profharness.rundir.shown.screen import encoded


def encode(certificate: Certificate) -> bytes:
    """Indented JSON with one trailing newline; the same certificate gives the same bytes."""
    return sealed(msgspec.json.format(encoded(certificate), indent=2) + b"\n")
