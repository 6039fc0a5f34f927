"""The wordings of the kit's own controls; applications bring theirs."""

from __future__ import annotations

WORDS: dict[str, tuple[str, ...]] = {
    "nothing_here": ("Nothing here yet.", "No entries.", "There is nothing to show."),
    "next_page": ("Next page", "More results", "Older entries"),
    "previous_page": ("Previous page", "Earlier results", "Newer entries"),
    "menu": ("Menu", "Navigation", "All sections"),
    "confirm": ("Confirm", "Yes, go ahead", "Proceed"),
    "cancel": ("Cancel", "No, go back", "Never mind"),
    "confirm_title": ("Please confirm", "Are you sure?", "One more step"),
    "not_found": ("Page not found", "This page does not exist", "Nothing at this address"),
    "code": ("Operation code", "Reference code", "Confirmation number"),
    "home": ("Home", "Start", "Overview"),
    "search": ("Search", "Find", "Look up"),
    "choose": ("Please choose", "Select one", "Not chosen yet"),
    "actions": ("Actions", "What you can do", "Manage"),
    "dismiss": ("Close", "Dismiss", "Hide this"),
    "sort_by": ("Sort by", "Order by", "Arrange by"),
    "filter_rows": ("Filter these rows", "Narrow this list", "Show only rows with"),
    "move_to": ("Move to", "Send to", "Put under"),
    "trail": ("Breadcrumb", "You are here", "Path to this page"),
    "saved": ("Done.", "Your change was made.", "All right, that is saved."),
    "accept_cookies": ("Accept cookies", "Allow cookies", "Agree to cookies"),
}
