"""Finds a Ray cluster, or starts one on this machine for the length of a run."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gdi.cores import available_cores
from gdi.errors import UserError, install_extra
from gdi.placement import PlacementConfig

ANSWER_SECONDS = 10.0
INSTALL = f"--runtime ray needs Ray, which is not installed: {install_extra('ray')}."


@contextmanager
def cluster(address: str, placement: PlacementConfig) -> Iterator[None]:
    """Inside, Ray is connected: to the cluster at ``address``, or without one to a new one on this machine alone."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked to be counted
    # What a lost actor was asked for besides fails, too, and nobody will ask for its result: that is no news.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    try:
        import ray
    except ImportError:
        raise UserError(INSTALL) from None
    if ray.is_initialized():  # by the caller, who also ends it
        if address:
            raise UserError("this process is connected to a Ray cluster already: drop ray_address.")
        yield
        return
    if address:
        _check_answers(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address:
            ray.init(address=address, **quiet)
        else:
            # Ray counts CPUs only to place parts; on one machine all of them must find a place, however few cores.
            cpus = max(available_cores(), needed_cpus(placement))
            # Ray gives its workers a low priority: beside any other program they would stand still, a local run not.
            config = {"worker_niceness": 0}
            with _same_modules():
                ray.init(address="local", num_cpus=cpus, include_dashboard=False, _system_config=config, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = f"the Ray cluster at {address!r}" if address else "a Ray cluster on this machine"
        told = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"cannot reach {where}: {told}") from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _same_modules() -> Iterator[None]:
    """Processes started inside find modules, such as a user's own environments, where this one does."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _check_answers(address: str) -> None:
    """Ray itself tries for minutes before it gives up on an address where nobody listens."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise UserError(f"--ray-address {address!r} is neither auto nor host:port.")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot reach the Ray cluster at {address!r}: {reason}. Is it running?") from None


def needed_cpus(placement: PlacementConfig) -> int:
    """CPUs that all parts ask for; the collector, the controller and the parameter server ask for none."""
    p = placement
    return int(p.actors * p.actor_cpus + p.learners * p.learner_cpus + p.evaluator_cpus + 0.999)
