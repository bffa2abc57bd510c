"""Files that the project's own hooks write into or beside a tool's output, and tables of scan
results.
"""
