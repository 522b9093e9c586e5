"""A causal chat model is turned into one that fills blocks: texts, noise, layout, lesson, session.

On transformers' own model classes. Knows no decoding.
"""
