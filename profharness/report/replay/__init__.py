"""Operators alone beside operators in their trace: as text, and as scripts that run one of them."""
