"""Figures from traces: pure functions from columns to records. No files, no text for people, no
plots.
"""
