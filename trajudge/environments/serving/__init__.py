"""Runs that a browser can reach: the server, what it issues, noise."""
