"""Search for better settings of a program, and the decision whether what was found is better.

`search` proposes, predicts and races candidates on development cases; `decide` looks at the sealed
held-out cases. What a candidate is, and how it is run, is behind two ports in `candidates`.
"""
