"""Power caps as an axis: planned, set, and set again."""
