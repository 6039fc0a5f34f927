"""Changes to correct runs, and whether a rule notices them."""
