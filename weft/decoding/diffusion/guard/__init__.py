"""What stands between foreign text and a model that fills in whatever is masked (DIJA)."""
