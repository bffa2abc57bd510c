"""SQLite files from anywhere, read as SQLite would recover them, never changed, within bounds."""
