"""A run directory while it is measured: made, held by this process alone, and given back."""
