"""Run directories as earlier versions left them, packed, each with the figures that it held."""
