"""Scripts of others that the page carries: each one file as it was published, with its licence and
hash.
"""
