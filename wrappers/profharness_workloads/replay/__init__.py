"""Runs recorded operators of torch alone, one after the other, and times them."""
