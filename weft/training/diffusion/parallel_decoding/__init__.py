"""Trainings that let a diffusion model write more slots a pass, from texts that it wrote itself."""
