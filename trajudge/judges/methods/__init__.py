"""The judges, one method per module."""
