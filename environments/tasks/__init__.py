"""What is asked in the shop: goal, the way there, and what the final state must and may hold.

Every task carries near misses too: moves that pick the wrong thing, and moves that do more than was
asked.
"""

from __future__ import annotations

from environments.tasks.account import CHANGE_ADDRESS, RETURN_HEADPHONES
from environments.tasks.looking import BEST_BACKPACK, CHEAPEST_LAMP
from environments.tasks.model import Move, Task
from environments.tasks.ordering import BUY_MUGS, TOTE_COUPON

TASKS: dict[str, Task] = {
    task.id: task
    for task in (
        BUY_MUGS,
        CHEAPEST_LAMP,
        TOTE_COUPON,
        BEST_BACKPACK,
        CHANGE_ADDRESS,
        RETURN_HEADPHONES,
    )
}

__all__ = ["TASKS", "Move", "Task"]
