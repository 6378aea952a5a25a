"""Where programs run: one port, and an adapter each for the simulator and a real GPU."""
