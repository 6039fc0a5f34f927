"""Performance against named peers or the physical limit, printed as ratios."""
