"""The operator E: controllers choose the index λ of every episode and learn from its return."""

from gdi.controller.base import Controller, Favourite, make_controller, make_controllers

__all__ = ["Controller", "Favourite", "make_controller", "make_controllers"]
