"""Draws a workflow's graph: a layered layout, and the layout as SVG or PNG."""
