"""`decode: auto`: chooses the drafter and the size of its draft for each step, by measurements.

Selection by measured history after MetaInf (arXiv 2508.09194), goodput after TurboSpec (arXiv
2406.14066). Cheap drafters draft along the text whether they are used or not, so that their
acceptance is known without a pass of the target.
"""
