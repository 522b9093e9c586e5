"""Drafters: one file per published decoder, by what its drafts are made from."""
