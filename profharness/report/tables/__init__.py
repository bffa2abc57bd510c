"""Tables that several forms of the report show."""
