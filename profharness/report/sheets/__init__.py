"""Pages beside the report, without plots: a comparison of two, and an index of many runs."""
