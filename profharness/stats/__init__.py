"""Pure statistics that a running scan needs as well as the analysis afterwards."""
