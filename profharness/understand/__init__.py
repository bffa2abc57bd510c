"""The understanding half: read what a run left, align and merge it, and turn it into figures and
reports. Starts nothing.
"""
