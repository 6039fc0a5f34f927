"""Runs recorded once more in a real browser, with one thing about them changed."""
