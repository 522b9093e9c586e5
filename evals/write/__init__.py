"""Workflows from words: samples imported, planted defects repaired, whole workflows written."""
