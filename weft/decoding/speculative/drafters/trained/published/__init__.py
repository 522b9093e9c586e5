"""Drafters in the formats in which others publish them: EAGLE-3, Medusa, DFlash."""
