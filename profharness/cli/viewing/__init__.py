"""What `view` does behind its line: a server of one trace, its link, and the place to open at."""
