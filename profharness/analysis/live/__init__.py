"""What a run that is still measured has come to so far: points, what is next, how long. Pure."""
