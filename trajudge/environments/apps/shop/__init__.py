"""A web shop: catalogue, cart, orders, wish list, account (consumer transactions)."""
