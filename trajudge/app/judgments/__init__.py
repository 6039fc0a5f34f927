"""The page of one judgment: verdict, the prompt as it was sent, and every call."""
