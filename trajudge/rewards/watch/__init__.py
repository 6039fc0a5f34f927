"""Whether rewards can still be trusted while a policy is trained on them."""
