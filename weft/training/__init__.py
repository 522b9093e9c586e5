"""Training of drafters and of diffusion models: one loop, its data, and a frozen teacher."""
