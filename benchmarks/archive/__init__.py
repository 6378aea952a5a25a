"""Measurements of the innovation archive: its speed and size when it is large, and what its searches find."""
