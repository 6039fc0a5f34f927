"""Honest runs of published tasks, built without this project's reading of a specification."""
