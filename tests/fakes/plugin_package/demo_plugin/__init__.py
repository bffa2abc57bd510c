"""A small package of somebody else's: one layer, one reader, one scan's name, one check of
traces.
"""
