"""The trace model and pure operations on it: build, align, merge, select. No files are touched
here.
"""
