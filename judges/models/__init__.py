"""What is known of models: capabilities, prices, the parameters they take."""
