"""Scores as tables, plots and files."""
