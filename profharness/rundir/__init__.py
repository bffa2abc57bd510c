"""The run directory: where everything lies, and how the project's own files are written and read.
Both halves share only this.
"""
