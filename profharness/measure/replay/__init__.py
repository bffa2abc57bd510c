"""Operators alone: a process of the workload's Python runs what a plan names, and answers."""
