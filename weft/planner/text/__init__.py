"""Plans as text: `reader` takes it while it is being written, `writer` has the canonical form."""
