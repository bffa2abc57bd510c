"""Faults that strike real processes at random moments, and a table of what each cost: `make faults`."""
