"""Finds a Ray cluster, or starts one on this machine for the duration of a run."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module

from gdi.cores import available_cores
from gdi.errors import UserError, install_hint
from gdi.placement import PlacementConfig
from gdi.runtime.ray.orphans import no_orphans

CONNECT_TIMEOUT_SECONDS = 10.0
OLDEST_WITH_TOKEN = (2, 52)
LOOPBACK_SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}
INSTALL = f"--runtime ray needs Ray, which is not installed: {install_hint('ray')}."


@contextmanager
def cluster(address: str, placement: PlacementConfig, cpus: int | None = None) -> Iterator[None]:
    """Connect to the cluster at ``address``, or to a new one on this machine if it is empty.

    A new one has ``cpus`` CPUs. By default it has one per core, or as many as the placement needs if that is more.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not send usage statistics
    # When an actor dies, its other pending calls fail as well. Nothing reads their results, so do not report them.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    try:
        import ray.util
    except ImportError:
        raise UserError(INSTALL) from None
    if ray.is_initialized():  # the caller connected, and the caller disconnects
        if address:
            raise UserError("this process is already connected to a Ray cluster: drop ray_address.")
        yield
        return
    if address:
        _check_reachable(address)
    with nullcontext() if address or placement.insecure else private_ray():
        try:
            if address:
                ray.init(address=address, **QUIET)
            else:
                _start(placement, cpus or max(available_cores(), needed_cpus(placement)))
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = f"the Ray cluster at {address!r}" if address else "a Ray cluster on this machine"
            told = next(iter(str(error).splitlines()), type(error).__name__)
            raise UserError(f"cannot reach {where}: {told}") from None
        with nullcontext() if address else no_orphans():
            try:
                yield
            finally:
                ray.shutdown()


def _start(placement: PlacementConfig, cpus: int) -> None:
    """Start a Ray on this machine. It counts CPUs only to place processes, so there may be more CPUs than cores."""
    import ray

    # By default Ray's workers have a low priority. Next to any other program they would starve, unlike a local run.
    config = {"worker_niceness": 0}
    with _environment(PYTHONPATH=os.pathsep.join(sys.path)):  # new processes import modules from where this one does
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, _system_config=config, **QUIET)
    address = ray.util.get_node_ip_address()
    if not (placement.insecure or address.startswith("127.")):
        ray.shutdown()
        raise UserError(
            f"Ray {ray.__version__} listens on {address}, beyond this machine: install the Ray that constraints.txt "
            "pins, or add --placement.insecure if nobody else can reach its ports."
        )


@contextmanager
def private_ray() -> Iterator[None]:
    """Let a Ray that starts inside the ``with`` block listen on the loopback only, and require a token."""
    import ray
    from ray._private import ray_constants

    if tuple(map(int, ray.__version__.split(".")[:2])) < OLDEST_WITH_TOKEN:
        raise UserError(
            f"Ray {ray.__version__} cannot require a token of its clients: install ray>=2.52, or add "
            "--placement.insecure if nobody else can reach its ports."
        )
    # On Linux this switch only chooses the loopback. Ray reads it once, and may be imported already.
    before, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        with _environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), **{LOOPBACK_SWITCH: "0"}):
            _forget_token()
            yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        # A run may end with an error. If this process still asked for the token, the next cluster would take it for
        # dead, and would cancel what it starts.
        _forget_token()


def _forget_token() -> None:
    """Let Ray read the token again, which it keeps per process."""
    raylet = import_module("ray._raylet")
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables inside the ``with`` block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
