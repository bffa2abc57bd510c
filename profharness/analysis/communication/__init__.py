"""Collectives and copies between devices: speed, cost, and ranks that are late."""
