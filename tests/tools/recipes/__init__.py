"""Tests of the recipes: graphs in, verified programs out."""
