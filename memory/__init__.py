"""What Warpsmith remembers: the nouns, the store of runs and the innovation archive."""
