"""The reports as Markdown: tables and figures for tickets and notes."""
