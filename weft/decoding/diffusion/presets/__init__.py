"""The table of diffusion decoders, read when one of them is asked for."""
