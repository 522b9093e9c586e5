"""The command line: one command per file. Only this package prints."""
