"""What py-spy samples of Python programs, as its `--format chrometrace` writes it."""
