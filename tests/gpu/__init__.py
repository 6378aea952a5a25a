"""Tests that need an NVIDIA GPU; run with `pytest -m gpu`."""
