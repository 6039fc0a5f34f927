"""An attacker that learns which attack works: it sees verdicts and scores, nothing else."""
