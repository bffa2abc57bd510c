"""Data that only the report's pictures need: reduced in size, and computed for reports alone."""
