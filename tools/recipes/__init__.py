"""Parametric CUDA kernel families: from a captured graph to Programs, by rules alone."""
