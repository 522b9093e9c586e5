"""The presets of all diffusion decoders, imported on demand."""
