"""Attaching to a process that runs already: whether it can be done, for how long, and what came of
it. That process is never signalled.
"""
