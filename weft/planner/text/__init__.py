"""Plans as text: `reader` parses it while it is written, `writer` has the canonical form."""
