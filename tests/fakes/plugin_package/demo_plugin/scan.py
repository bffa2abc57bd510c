"""The batch scan under another name, with one size."""

from __future__ import annotations

from dataclasses import replace

from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.scans.batch import BatchScan


class DemoScan(BatchScan):
    """One point."""

    @classmethod
    def from_request(cls, request: Request, environment: Environment) -> BatchScan:
        found = BatchScan.from_request(request, environment)
        return replace(found, name="demo", points=found.points[:1])
