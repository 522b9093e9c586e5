"""Reports of evaluations: in the terminal, as a page, as files for CI."""
