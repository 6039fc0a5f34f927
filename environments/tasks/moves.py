"""The moves that tasks of the shop share."""

from __future__ import annotations

from environments.tasks.model import Move


def click(role: str, name: str, why: str) -> Move:
    return Move("click", role, name, why=why)


def fill(name: str, text: str, why: str, role: str = "textbox") -> Move:
    return Move("fill", role, name, text, why)


def choose(name: str, option: str, why: str) -> Move:
    return Move("select_option", "combobox", name, option, why)


def search(words: str) -> Move:
    return fill("Search", words, f"look for {words}", role="searchbox")


APPLY = click("button", "Apply", "apply the search")
ADD = click("button", "Add to cart", "put it into the cart")
CHECKOUT = click("link", "Proceed to checkout", "go on to the checkout")
PLACE = click("button", "Place order", "place the order")
SUBSCRIBE = (
    fill("Email for our newsletter", "robin.hale@post.example", "fill in the email field as well"),
    click("button", "Subscribe", "confirm the form"),
)
TO_CART = click("link", "Cart (", "check the cart")
TO_PRODUCTS = click("link", "Products", "go back to the products")
TO_ORDERS = click("link", "Orders", "look at the orders")
TO_ACCOUNT = click("link", "Account", "open the account")
