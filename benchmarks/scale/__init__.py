"""How the search scales without a device: the time, memory and files that 20,000 candidates take."""
