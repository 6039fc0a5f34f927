"""Judging many recorded runs, and what is kept of it."""
