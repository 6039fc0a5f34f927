"""Candidates measured and tested: scores, rates, corrections, transport, yields."""
