"""How a trajectory is changed: its fields and steps, trees, pictures, and the texts put there."""
