"""Acting and data: actors play, a collector cuts and repeats, a parameter server hands θ on."""

from gdi.acting.actor import Actor
from gdi.acting.collector import Collector
from gdi.acting.parameters import ParameterServer

__all__ = ["Actor", "Collector", "ParameterServer"]
