"""Applying a decision: what is accepted, for whom it holds, and how it is certified again."""
