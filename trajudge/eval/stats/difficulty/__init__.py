"""How hard tasks are, and subsets of hard ones (WebArena Verified, section 4.5)."""
