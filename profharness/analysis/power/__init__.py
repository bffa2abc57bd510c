"""Telemetry and energy joined to the work that was running."""
