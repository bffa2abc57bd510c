"""A `Summary` as text: sentences, terminal tables, CSV, JSON and one self-contained HTML page.

Nothing is measured or fitted here and no file is opened besides the package's own templates: every
function maps a `profharness.analysis.records.Summary` to text or bytes. A number that is missing
says what it needs; it is never printed as zero.
"""
