"""Runs and published judgments scored again, without a call: what ``trajudge score`` does."""
