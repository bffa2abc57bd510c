"""What jobs leave beside their runs."""
