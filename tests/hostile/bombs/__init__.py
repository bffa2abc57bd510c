"""Bombs: small inputs that are valid, or nearly so, and were made to cost much, and what the
command line takes to answer each (`python -m tests.hostile.bombs --help`).
"""
