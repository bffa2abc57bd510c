"""Private temporary folders: of one process, removed when it ends, however it ends."""
