"""How `hotspots` lists its rows: their forms, and rows of other kinds."""
