"""Measurements that back the project's claims; results stand in `results/` with their machine line."""
