"""An EAGLE-style drafter: features of the target's own layers, carried on by one more layer.

After EAGLE (arXiv 2401.15077), EAGLE-2's trees (2406.16858) and EAGLE-3's features (2503.01840).
"""
