"""Claims: of any number of processes one wins, and what a dead or silent process held is free again."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gdi.errors import StorageError
from gdi.sweep import claim as module
from gdi.sweep import holder as holders
from gdi.sweep.claim import KEPT_GENERATIONS, Claim, Claims, newest_generations
from gdi.sweep.files import remove_parts, write_whole
from gdi.sweep.holder import Holder, is_dead, machine
from gdi.sweep.worker import keep_claim

ROUNDS, RACERS = 300, 3


def race(folder: Path, number: int, barrier: Any, results: Any) -> None:
    """Try to claim the name of each round at the same moment as the others; note who won."""
    claims, won = Claims(folder), []
    for turn in range(ROUNDS):
        barrier.wait()
        if claims.acquire(f"round-{turn // 10}") is not None:
            won.append(turn)
    results.put((number, won))


def race_and_release(folder: Path, number: int, barrier: Any, results: Any) -> None:
    """Claim one name again and again; while it is held, no other process may be inside."""
    claims, inside, clashes, wins = Claims(folder), folder.parent / "inside", 0, 0
    barrier.wait()
    deadline = time.monotonic() + 60
    while wins < 100 and time.monotonic() < deadline:
        found = claims.acquire("one")
        if found is None:
            continue
        wins += 1
        try:
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            clashes += 1
        else:
            inside.unlink()
        assert found.is_mine()
        found.release()
    results.put((number, wins, clashes))


def acquired(claims: Claims, name: str) -> Claim:
    claim = claims.acquire(name)
    assert claim is not None
    return claim


def run_racers(target: Any, folder: Path) -> list[Any]:
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(RACERS), context.Queue()
    racers = [context.Process(target=target, args=(folder, number, barrier, results)) for number in range(RACERS)]
    for racer in racers:
        racer.start()
    found = [results.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join()
    return found


def test_of_processes_that_race_for_a_claim_exactly_one_wins(tmp_path: Path) -> None:
    found = run_racers(race, tmp_path / "claims")
    winners = {turn: [number for number, won in found if turn in won] for turn in range(ROUNDS)}
    # The first turn of ten is a race for a free name; in the other nine it is held.
    assert [len(winners[turn]) for turn in range(ROUNDS)] == [int(turn % 10 == 0) for turn in range(ROUNDS)]


def test_a_name_that_is_claimed_and_released_has_never_two_holders(tmp_path: Path) -> None:
    found = run_racers(race_and_release, tmp_path / "claims")
    assert [(wins, clashes) for _, wins, clashes in found] == [(100, 0)] * RACERS
    assert newest_generations(tmp_path / "claims") == {"one": 100 * RACERS}
    assert len(list((tmp_path / "claims").glob("one.*"))) == KEPT_GENERATIONS


def test_of_two_that_take_over_a_stale_claim_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both see the same stale claim; the second has read it before the first takes it over."""
    claims = Claims(tmp_path)
    old = acquired(claims, "job")
    os.utime(old.path, (1, 1))
    before = module.newest_generations(tmp_path)
    first = claims.acquire("job")
    with monkeypatch.context() as patch:
        patch.setattr(module, "newest_generations", lambda folder: before)
        assert claims.acquire("job") is None
    assert first is not None
    assert first.is_mine()
    assert not old.is_mine()
    assert not old.beat()


def test_a_slow_process_cannot_win_an_old_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations that it has read about are long removed, so it can create the next one, but it is not the newest."""
    claims = Claims(tmp_path)
    first = acquired(claims, "job")
    first.release()
    read = module.newest_generations
    slept = read(tmp_path)
    for turn in range(KEPT_GENERATIONS + 2):
        held = acquired(claims, "job")
        if turn < KEPT_GENERATIONS + 1:
            held.release()
    assert not (tmp_path / "job.2").exists()
    answers = iter([slept])
    monkeypatch.setattr(module, "newest_generations", lambda folder: next(answers, None) or read(folder))
    monkeypatch.setattr(Claims, "_state", lambda self, path: module.ClaimState(is_free=True))
    assert claims.acquire("job") is None
    assert not (tmp_path / "job.2").exists()
    assert held.is_mine()


def test_a_held_claim_is_free_only_after_its_end(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    held = acquired(claims, "job")
    assert claims.acquire("job") is None
    assert claims.acquire("other") is not None
    state = claims.state("job")
    assert (state.is_free, state.holders) == (False, (Holder.me(),))
    held.release()
    assert claims.state("job").is_free
    assert claims.acquire("job") is not None
    held.release()  # of a claim that another has by now: it changes nothing
    assert not claims.state("job").is_free


def elsewhere(claim: Claim) -> None:
    """Let a claim be held by a process of another machine."""
    claim.adopt([Holder("another machine", 1, "1")])


def test_a_claim_of_another_machine_is_free_after_a_minute_of_silence(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    held = acquired(claims, "job")
    elsewhere(held)
    now = time.time()
    os.utime(held.path, (now, now - 50))
    assert claims.acquire("job") is None
    os.utime(held.path, (now, now - 70))
    assert claims.state("job").is_free
    assert held.beat()
    assert claims.acquire("job") is None


def test_a_claim_of_a_dead_process_is_free_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gdi.sweep.claim import Claims\n"
        "Claims(Path(sys.argv[1])).acquire('job'); print(1, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    claims = Claims(tmp_path)
    assert claims.acquire("job") is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert claims.acquire("job") is not None


def test_a_worker_whose_claim_is_lost_ends_at_once(tmp_path: Path) -> None:
    claim = acquired(Claims(tmp_path), "job")
    (tmp_path / "job.2").touch()
    code = (
        "import sys; from pathlib import Path; from gdi.sweep.claim import Claim\n"
        "from gdi.sweep.worker import keep_claim\n"
        "keep_claim(Claim(Path(sys.argv[1]), sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(claim.path), claim.token]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL


def test_a_claim_lives_as_long_as_one_of_its_processes(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    held = acquired(claims, "job")
    dead = Holder(machine(), 2**22 + 1, "5")
    held.adopt([dead, Holder.me()])
    assert not claims.state("job").is_free
    held.adopt([dead, dead])
    assert claims.state("job").is_free


def test_a_number_that_another_process_has_by_now_is_no_sign_of_life() -> None:
    me = Holder.me()
    assert not is_dead(me)
    assert is_dead(Holder(me.host, me.pid, "0"))
    assert not is_dead(Holder("another machine", me.pid, "0"))


def test_a_process_that_waits_to_be_collected_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)
    me = Holder.of(process.pid)
    deadline = time.monotonic() + 60
    while not is_dead(me):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.wait()


def test_without_proc_a_process_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def __init__(self, path: str) -> None: ...

        def read_text(self) -> str:
            raise FileNotFoundError

        def exists(self) -> bool:
            return False

    monkeypatch.setattr(holders, "Path", Missing)
    assert not is_dead(Holder(machine(), os.getpid(), ""))
    assert is_dead(Holder(machine(), 2**22 + 1, ""))


def test_a_claim_that_is_being_written_is_held(tmp_path: Path) -> None:
    (tmp_path / "job.1").write_text("")
    claims = Claims(tmp_path)
    assert claims.acquire("job") is None
    os.utime(tmp_path / "job.1", (1, 1))
    assert claims.acquire("job") is not None


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("a file")
    with pytest.raises(StorageError, match="cannot be written"):
        Claims(tmp_path / "claims").acquire("job")


def killed_while_writing(path: Path) -> None:
    os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    write_whole(path, "lost")


def test_unfinished_files_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=killed_while_writing, args=(tmp_path / "results.csv",))
    process.start()
    process.join()
    assert len(list(tmp_path.glob(".results.csv.*.part"))) == 1
    others = Holder("another machine", os.getpid(), Holder.me().began)
    living = [tmp_path / f".results.csv.{holder.label}.00.part" for holder in (Holder.me(), others)]
    users = tmp_path / ".mine.part"
    for path in (*living, users):
        path.touch()
    remove_parts(tmp_path)
    assert {*tmp_path.iterdir()} == {*living, users}


def test_a_disk_that_fails_for_a_moment_loses_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of claims is gone for a while. Only before others may take the claim is it lost."""
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    held = acquired(Claims(tmp_path / "claims"), "job")
    (tmp_path / "claims").rename(tmp_path / "away")
    now += module.LOST_SECONDS - 1
    assert held.beat()
    (tmp_path / "away").rename(tmp_path / "claims")
    now += 2
    assert held.beat()
    (tmp_path / "claims").rename(tmp_path / "away")
    now += module.LOST_SECONDS - 1
    assert held.beat()
    now += 2
    assert now < 1000 + 3 * module.STALE_SECONDS
    assert not held.beat()
    held.release()  # raises nothing


def test_a_heartbeat_outlives_an_error_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        """Ends the heartbeat."""

    held, beats, utime = acquired(Claims(tmp_path), "job"), 0, os.utime

    def fails_first(path: Any) -> None:
        nonlocal beats
        beats += 1
        if beats == 1:
            raise OSError(errno.ESTALE, "stale file handle")
        if beats == 3:
            raise Enough
        utime(path)

    monkeypatch.setattr(module.os, "utime", fails_first)
    monkeypatch.setattr("gdi.sweep.worker.HEARTBEAT_SECONDS", 0.0)
    with pytest.raises(Enough):
        keep_claim(held)
    assert beats == 3
