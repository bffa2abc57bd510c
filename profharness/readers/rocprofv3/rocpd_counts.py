"""What a rocpd database holds of counters beside those of the kernels that it shows: the tables are
counted, whose views cost a join.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.readers.rocprofv3.rocpd_tables import OwnerTables


@dataclass(frozen=True)
class Values:
    """How many values of counters are left out, by what they are, and how many were sampled while
    kernels ran.
    """

    left_out: dict[str, int]
    sampled: int


def count_values(file: OwnerTables, *, counted: bool) -> Values:
    """Counts the values of one process that belong to no kernel that the file shows (a device is
    counted over a time, too), and in a file of one process where none was read (not `counted`)
    those of kernels. A sampled one has a `sample_id`, from schema 3.0.3 on. The file has
    `rocpd_pmc_event`. Raises one of `databases.guard.DAMAGED`.
    """
    of_owner, wanted = ("TRUE", ()) if file.alone else ("guid = :guid", {"guid": file.owner.guid})
    known = "sample_id" in file.columns("rocpd_pmc_event")
    # made of constants
    shown = (
        "SELECT event_id FROM rocpd_kernel_dispatch "  # noqa: S608  made of constants
        f"WHERE {of_owner} AND event_id IS NOT NULL "
        f"AND id IN (SELECT id FROM kernels WHERE {of_owner})"
    )
    sampled = "sample_id IS NOT NULL" if known else "FALSE"
    row = file.execute(
        "SELECT COALESCE(SUM(CASE WHEN "  # noqa: S608  made of constants
        f"{sampled} THEN 0 WHEN event_id IS NULL OR event_id NOT IN ({shown}) THEN 1 ELSE 0 END), "
        f"0), COALESCE(SUM(CASE WHEN {sampled} THEN 1 ELSE 0 END), 0), COUNT(*) "
        f"FROM rocpd_pmc_event WHERE {of_owner}",
        wanted,
    ).fetchone()
    of_none, samples, every = map(int, row)
    hidden = 0 if counted or not file.alone else every - of_none - samples
    return Values(
        {
            "counter values of no kernel that the file shows": of_none,
            "counter values without a number, or that no view of the file shows": hidden,
        },
        samples,
    )
