"""Agents that see no page."""
