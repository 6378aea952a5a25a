"""Torch, CUDA and the simulator live here: capture, compile, run, verify, time, profile and export."""
