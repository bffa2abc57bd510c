"""Pictures of the HTML report that show what an expert looks for first."""
