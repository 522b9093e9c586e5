"""Rules that walk a draft down the laws of the target. All of them keep the target's law."""
