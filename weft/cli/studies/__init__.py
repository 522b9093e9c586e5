"""`weft optimise`: studies from the command line, and their reports."""
