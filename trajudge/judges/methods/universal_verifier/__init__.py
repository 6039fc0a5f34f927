"""The Universal Verifier (arXiv 2604.06240) as a folder of stages: a rubric, evidence from every
screenshot, points, the outcome; ``judge`` joins the stages."""
