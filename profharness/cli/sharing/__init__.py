"""Commands that hand results on: to a colleague, a spreadsheet, a dashboard."""
