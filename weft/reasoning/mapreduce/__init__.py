"""Questions about documents longer than the window: split, map, collapse, reduce."""
