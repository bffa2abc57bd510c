"""What `profharness replay` does: its line, its rounds of calls, and the scripts that it writes."""
