"""trajudge tells whether a judge of web-agent trajectories can be trusted."""
