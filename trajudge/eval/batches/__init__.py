"""Runs whose calls go through a provider's batch interface, and the command about batches."""
