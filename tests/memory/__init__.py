"""Tests of the nouns, the store and the archive."""
