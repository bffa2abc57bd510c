"""The page of a run that is still measured: its parts as HTML, and its pictures as SVG."""
