"""Foreign names as they are shown: on a screen, in JSON, and in the cells of a spreadsheet."""
