"""Guards against foreign text in front of a model that fills every mask (DIJA)."""
