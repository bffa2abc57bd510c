"""How columns are made and compared: growing, constant, keyed, and pools of text."""
