"""Certificates of runs that were made on purpose: saturated, unsaturated, and broken."""
