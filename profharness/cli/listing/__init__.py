"""What `hotspots` does behind its line for rows that are no rows of records."""
