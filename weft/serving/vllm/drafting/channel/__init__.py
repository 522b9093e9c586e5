"""Texts for proposers from outside: a socket in a folder of the user's own, one line a text."""
