"""How the ranks of one run find one another: the folder, the word of a node's leader, waiting."""
