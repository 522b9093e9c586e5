"""Runs that are recorded: gone on with, repeated, branched off, compared, carried elsewhere."""
