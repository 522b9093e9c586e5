"""Drafters that need neither weights nor a second model: n-grams of the text itself."""
