"""Memory: what was copied and how fast, and what allocators held, for whom and how long."""
