"""Run directories from elsewhere: which of their files are opened, and how much of each is read."""
