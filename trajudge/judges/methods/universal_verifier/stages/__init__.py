"""The stages of the verifier, from the rubric to the failure points."""
