"""AMD devices: our own reading of sysfs, and AMD's library for a second opinion."""
