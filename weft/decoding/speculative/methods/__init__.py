"""The decoders by name, one module each with its `PRESET`."""
