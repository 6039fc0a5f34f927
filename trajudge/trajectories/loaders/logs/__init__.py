"""Loaders of what agents' own tools write: one module a format, and one for its parts."""
