"""Where time went: windows, device work, gaps and their causes."""
