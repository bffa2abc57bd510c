"""Whether a run proves that a device is saturated: criteria with thresholds, and what follows."""
