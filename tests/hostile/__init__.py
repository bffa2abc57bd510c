"""Damaged and hostile inputs: real files of every format, changed where their structure says it
hurts, and what the command line answers of each (`python -m tests.hostile --help`).
"""
