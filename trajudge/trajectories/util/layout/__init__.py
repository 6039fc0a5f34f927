"""How the lines of a table are laid out, whatever it holds: aligned, stacked or wrapped."""
