"""Where torch keeps its dispatch modes."""
