"""What recorded runs say of the agents that made them."""
