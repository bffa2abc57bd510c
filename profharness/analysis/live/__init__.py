"""What a run that is still measured has come to so far: its points, what is next, how long. Pure."""
