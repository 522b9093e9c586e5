"""Workflows from words: samples imported, planted defects mended, whole workflows written."""
