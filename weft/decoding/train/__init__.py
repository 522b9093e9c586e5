"""What all trainers share: the frame of steps, and the precision they compute in.

Knows neither models nor texts.
"""
