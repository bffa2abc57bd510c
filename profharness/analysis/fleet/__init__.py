"""How many devices a load needs: a discrete-event simulation of a fleet of servers, its figures
with intervals, and the search for the smallest fleet that keeps a limit.
"""
