"""A regional statistics and library portal (information retrieval)."""
