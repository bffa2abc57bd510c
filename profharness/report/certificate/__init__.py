"""A certificate as JSON, as one offline page, and as text for a terminal."""
