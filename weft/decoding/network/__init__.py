"""A language model in this process: many rows in one pass, with keys and values of their own.

On torch and transformers' own model classes. Knows no text, no sampling and no requests.
"""
