"""Facts about models: capabilities, prices, supported parameters."""
