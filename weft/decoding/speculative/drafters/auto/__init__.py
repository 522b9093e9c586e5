"""`decode: auto`: which drafter, and how much of its draft, step by step, from what was measured.

Selection by measured history after MetaInf (arXiv 2508.09194), goodput after TurboSpec (arXiv
2406.14066). Drafters that cost next to nothing are followed along the text whether they are used or
not, so what they would have been worth is known without a pass of the target.
"""
