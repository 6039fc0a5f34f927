"""The replies of the verifier's stages: what they must hold, and what a dry run assumes."""
