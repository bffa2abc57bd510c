"""rocprofv3's agent_info files: the processors of a node."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from profharness.readers.bytes.csv_columns import (
    Table,
    integers,
    not_numbers,
    read_table,
    unreadable,
)
from profharness.readers.rocprofv3.agents import Agent, pci_id
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem

_NUMBERS = (
    "Logical_Node_Id",
    "Cu_Count",
    "Num_Xcc",
    "Max_Engine_Clk_Fcompute",
    "Location_Id",
    "Domain",
    "Vendor_Id",
    "Device_Id",
)


def read_agents(path: Path, problems: list[Problem]) -> tuple[Agent, ...]:
    """The agents, GPUs numbered among themselves in the order of their nodes; what is wrong with
    the file goes to `problems`. Raises InputError when the file cannot be read.
    """
    table = read_table(path)
    problems += table.problems()
    kinds = table.first("Agent_Type") or []
    nodes = _numbers(table, "Node_Id")
    gpus = sorted(node for node, kind in zip(nodes, kinds, strict=True) if kind == "GPU")
    numbers = {column: _numbers(table, column) for column in _NUMBERS}
    problems += not_numbers(path, sum(_lost(table, column) for column in ("Node_Id", *_NUMBERS)))
    texts = {
        column: table.first(column) or [""] * table.rows
        for column in ("Name", "Vendor_Name", "Product_Name")
    }
    agents = []
    for row, (node, kind) in enumerate(zip(nodes, kinds, strict=True)):
        stated = {
            column: None if values[row] in (NULL, 0) else values[row]
            for column, values in numbers.items()
        }
        logical = numbers["Logical_Node_Id"][row]
        agents.append(
            Agent(
                number=node if logical == NULL else logical,
                node=node,
                is_gpu=kind == "GPU",
                architecture=texts["Name"][row],
                product=texts["Product_Name"][row],
                vendor=texts["Vendor_Name"][row],
                compute_units=stated["Cu_Count"],
                dies=stated["Num_Xcc"],
                max_clock_mhz=stated["Max_Engine_Clk_Fcompute"],
                location=stated["Location_Id"],
                domain=stated["Domain"] or 0,
                type_number=gpus.index(node) if kind == "GPU" else NULL,
                pci_id=pci_id(stated["Vendor_Id"] or 0, stated["Device_Id"] or 0),
            )
        )
    return tuple(agents)


def _numbers(table: Table, column: str) -> list[int]:
    values: list[int] = np.maximum(integers(table.first(column), table.rows).values, NULL).tolist()
    return values


def _lost(table: Table, column: str) -> int:
    texts = table.first(column)
    return unreadable(texts, integers(texts, table.rows))
