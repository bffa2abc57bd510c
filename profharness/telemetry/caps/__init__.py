"""Power caps of a node's accelerators: who may set them, the caps that are to come back, and the
process that sets them again.
"""
