"""Operators alone beside operators in their trace: which are the hottest, and what is their own."""
