"""Where the time of two traces differs: by operator, shape, module, category, and by tree."""
