"""Errors, exit codes, terminals, files: what every room uses."""
