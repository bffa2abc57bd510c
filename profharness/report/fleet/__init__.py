"""What a simulated fleet does, in words."""
