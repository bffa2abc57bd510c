"""The critical path: what each instant of a window waited for, and what a change would be worth."""
