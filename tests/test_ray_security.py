"""A Ray that a run starts is closed to everyone else, on this machine and beyond it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import gdi
from gdi.errors import UserError
from gdi.runtime.exceptions import StallError
from gdi.runtime.ray.cluster import cluster, private_ray
from helpers import tiny_config
from ray_runs import QUICK, At, below, seldom

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

CLIENT = """
import sys
from ray._raylet import GcsClient
print(len(GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, 10)) >= 0)
"""


def listening_beyond_loopback() -> list[str]:
    """Return the addresses in hexadecimal on which this process and those below it listen, except the loopback."""
    sockets = set()
    for pid in below(os.getpid()):
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    sockets.add(os.readlink(descriptor))
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]
    assert listening, "nothing listens, so the test sees nothing"
    loopback = ("0100007F:", "0000000000000000FFFF00000100007F:", "00000000000000000000000001000000:")
    return [address for address in listening if not address.startswith(loopback)]


def client(**token: str) -> subprocess.CompletedProcess[str]:
    """Try to join the Ray of this process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-c", CLIENT, address]
    return subprocess.run(command, env={**env, **token}, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.usefixtures("own_ray")
def test_a_run_on_its_own_ray_is_closed(tmp_path: Path) -> None:
    """Two learners, because these also listen for each other."""
    seen: dict[str, object] = {}

    def look() -> None:
        seen["open"] = listening_beyond_loopback()
        seen["without"] = client(RAY_AUTH_MODE="disabled").stdout
        seen["wrong"] = client(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64).stdout
        right = {name: os.environ[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        seen["right"] = client(**right).stdout

    before = dict(os.environ)
    config = seldom(
        tiny_config("ray_envs:Plain-v0", steps=400, normalize=False)
    )  # its processes find this folder's modules
    placement = replace(QUICK, learners=2)
    gdi.train(config, tmp_path / "run", runtime="ray", placement=placement, console=At(100, look))
    assert seen["open"] == []
    assert (seen["without"], seen["wrong"]) == ("", "")
    assert seen["right"] == "True\n"  # so the others failed because of the token
    assert {k: v for k, v in os.environ.items() if "TOKEN" in k or "AUTH" in k} == {
        k: v for k, v in before.items() if "TOKEN" in k or "AUTH" in k
    }


@pytest.mark.usefixtures("own_ray")
def test_a_ray_without_tokens_is_refused_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "__version__", "2.51.1")
    told = r"Ray 2\.51\.1 cannot require a token .* --placement\.insecure"
    with pytest.raises(UserError, match=told), cluster("", QUICK):
        pytest.fail("it started")
    assert not ray.is_initialized()
    started = []
    monkeypatch.setattr(ray, "init", lambda **options: started.append(os.environ.get("RAY_AUTH_TOKEN")))
    with cluster("", replace(QUICK, insecure=True)):
        assert started == [None]


@pytest.mark.usefixtures("own_ray")
def test_a_ray_that_listens_beyond_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "init", lambda **options: None)
    monkeypatch.setattr("ray.util.get_node_ip_address", lambda: "192.0.2.7")
    told = r"listens on 192\.0\.2\.7, beyond this machine: .* --placement\.insecure"
    with pytest.raises(UserError, match=told), cluster("", QUICK):
        pytest.fail("it started")


@pytest.mark.usefixtures("own_ray")
def test_the_token_is_forgotten_however_the_run_ends() -> None:
    """A process that still asked for it would refuse the calls of the next cluster."""
    from ray._raylet import AuthenticationMode, get_authentication_mode

    with private_ray():
        assert get_authentication_mode() == AuthenticationMode.TOKEN
    assert get_authentication_mode() == AuthenticationMode.DISABLED
    with pytest.raises(StallError, match="in the run"), private_ray():
        raise StallError("in the run")
    assert get_authentication_mode() == AuthenticationMode.DISABLED


@pytest.mark.usefixtures("own_ray")
def test_a_sweeps_own_ray_has_a_cpu_per_core_and_a_runs_own_fits_its_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gdi.runtime.ray import cluster as module
    from gdi.sweep import on_ray

    started: list[int] = []
    monkeypatch.setattr(ray, "init", lambda **options: started.append(options["num_cpus"]))
    monkeypatch.setattr("ray.util.get_node_ip_address", lambda: "127.0.0.1")
    monkeypatch.setattr(on_ray, "available_cores", lambda: 2, raising=False)
    monkeypatch.setattr(module, "available_cores", lambda: 2)
    with on_ray.ray_cluster(""), module.cluster("", QUICK):
        assert started == [2, 3]
