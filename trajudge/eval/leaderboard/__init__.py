"""Judges compared: one table per benchmark, one static page and one CSV."""
