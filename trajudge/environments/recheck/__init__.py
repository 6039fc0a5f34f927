"""Recorded runs verified again from their facts, without a browser."""
