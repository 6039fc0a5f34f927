"""The page of one trajectory: steps, screenshots with the click drawn in, trees, verdicts."""
