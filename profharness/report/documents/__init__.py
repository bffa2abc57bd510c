"""A report as one page for papers and tickets, in Markdown or PDF, and as a notebook."""
