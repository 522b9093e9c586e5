"""The words that the loops say to a model, one prompt to a file, each with its version.

Change a prompt, and its version and golden file change with it: figures name the version.
"""
