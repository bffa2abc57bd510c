"""Who owns a run directory: created in one step, held by one process, sealed by its user."""
