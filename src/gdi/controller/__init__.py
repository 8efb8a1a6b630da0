"""Controllers (E): they choose the index (λ) of every episode and learn from its return."""

from gdi.controller.base import Belief, Controller
from gdi.controller.factory import make_controller

__all__ = ["Belief", "Controller", "make_controller"]
