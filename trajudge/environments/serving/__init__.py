"""Runs that a browser can reach: the server, what it issues, noise, static copies."""

PAGES = 600
"""Pages of a static copy at most; links beyond them lead to a page that says so."""
