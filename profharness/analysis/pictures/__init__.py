"""What the report's pictures draw that no figure needs: thinned, and made for reports alone."""
