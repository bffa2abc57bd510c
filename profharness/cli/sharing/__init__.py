"""What is made to be shown to others: pages and documents of runs and files, bundles, an index."""
