"""What `profharness fleet` does: its line."""
