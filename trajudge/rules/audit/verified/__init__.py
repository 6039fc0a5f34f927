"""What is wrong with Verified's specifications: lint, synthesis, mutants."""
