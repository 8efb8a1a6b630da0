"""Finds a Ray cluster, or starts one on this machine for the duration of a run."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gdi.cores import available_cores
from gdi.errors import UserError, install_hint
from gdi.placement import PlacementConfig

CONNECT_TIMEOUT_SECONDS = 10.0
INSTALL = f"--runtime ray needs Ray, which is not installed: {install_hint('ray')}."


@contextmanager
def cluster(address: str, placement: PlacementConfig) -> Iterator[None]:
    """Connect to the cluster at ``address``, or to a new one on this machine if it is empty."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not send usage statistics
    # When an actor dies, its other pending calls fail as well. Nothing reads their results, so do not report them.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    try:
        import ray
    except ImportError:
        raise UserError(INSTALL) from None
    if ray.is_initialized():  # the caller connected, and the caller disconnects
        if address:
            raise UserError("this process is already connected to a Ray cluster: drop ray_address.")
        yield
        return
    if address:
        _check_reachable(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address:
            ray.init(address=address, **quiet)
        else:
            # Ray counts CPUs only to place processes. On one machine all of them must fit, even with few cores.
            cpus = max(available_cores(), needed_cpus(placement))
            # By default Ray's workers have a low priority. Next to any other program they would starve, unlike a local
            # run.
            config = {"worker_niceness": 0}
            with _inherit_python_path():
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
def _inherit_python_path() -> Iterator[None]:
    """Let new processes import modules, such as a user's environments, from where this one does."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _check_reachable(address: str) -> None:
    """Raise UserError if no process listens at ``address``, because Ray itself retries for minutes."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise UserError(f"--ray-address {address!r} is neither auto nor host:port: pass one of these.")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot reach the Ray cluster at {address!r}: {reason}. Is it running?") from None


def needed_cpus(placement: PlacementConfig) -> int:
    """Return the CPUs that all processes request.

    The collector, the controller and the parameter server request none.
    """
    p = placement
    return int(p.actors * p.actor_cpus + p.learners * p.learner_cpus + p.evaluator_cpus + 0.999)
