"""Values that must not leave the machine: which they are, and how they are removed from texts and
trace files.
"""
