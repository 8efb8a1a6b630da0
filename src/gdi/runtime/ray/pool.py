"""The acting processes of a run: the pool keeps them busy, watches them and replaces lost ones.

The number of actors may change during a run. An actor plays up to ``queue_windows`` windows ahead of the learner and
then pauses. If an actor is lost, its undelivered windows are dropped and counted, and their steps return to the budget.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import ray
from ray.exceptions import RayError

from gdi.iteration import Sampled
from gdi.placement import PlacementConfig
from gdi.runtime.exceptions import StallError
from gdi.runtime.ray.error_mapping import describe_error, one_line, unwrap_run_error
from gdi.runtime.ray.processes import POLL_SECONDS, Handle, Ref
from gdi.types import State

# An environment that fails at every start is broken.
FAILURES_PER_ACTOR = 5

# Time for an actor to return its state, in addition to the time for the windows before it.
SAVE_SECONDS = 5.0

# make(number, which) starts actor ``number``; ``which`` seeds it.
Make = Callable[[int, "tuple[int, ...]"], Handle]


@dataclass
class WindowRequest:
    """A requested window of an actor."""

    window: Ref
    report: Ref
    max_transitions: int


@dataclass
class PoolMember:
    """One acting process."""

    number: int
    handle: Handle
    # Resolves once the process lives. Until then it may be waiting for a free CPU.
    placed: Ref
    started: Ref  # resolves once its environments exist
    state: State | None  # what it continues from; None after its start
    ready: bool = False
    leaving: bool = False
    busy_since: float = math.inf  # start of its initialization, or of the window that it plays
    tasks: deque[WindowRequest] = field(default_factory=deque)


@dataclass(frozen=True)
class FinishedWindow:
    """A played window: its location and its transitions and episodes."""

    window: Ref
    sampled: Sampled
    actor: int


class ActorPool:
    """A pool of actors that returns windows in the order in which they finish."""

    def __init__(
        self,
        make: Make,
        placement: PlacementConfig,
        window_transitions: int,
        wanted: Callable[[], int],
        notice: Callable[[str], None],
        check_others: Callable[[], None],
    ) -> None:
        """``wanted`` returns the requested number of actors; ``check_others`` raises if another process died."""
        self._make, self._placement = make, placement
        self._window_transitions = window_transitions
        self._wanted, self._notice, self._check_others = wanted, notice, check_others
        self._members: dict[int, PoolMember] = {}
        self._times_started: dict[int, int] = {}  # by number, so that each replacement plays new episodes
        self._first_steps = 0  # first step of this session, so that each session plays new episodes
        self._looked_for_hung = 0.0
        self._waited_seconds = 0.0  # since the last window
        self._longest_window_seconds = 0.0
        self._failures_in_a_row = 0
        self._any_delivered = False
        self.first_error = ""
        self.replaced_total = 0
        self.dropped_total = 0
        self._queued: list[int] = []  # number of finished windows in the queue at each delivery since the last log line

    def start(self, states: dict[int, State] | None = None, steps: int = 0) -> None:
        """Start the requested number of actors; those with a state continue from it."""
        self._first_steps = steps
        for number in range(self._wanted()):
            self._add(number, None if states is None else states.get(number))

    def _add(self, number: int, state: State | None = None) -> None:
        times = self._times_started.get(number, 0)
        self._times_started[number] = times + 1
        which = (number, times, self._first_steps)
        # The first process of the first actor of a new run has the same seed as the local runtime's actor.
        handle = self._make(number, which if any(which) else ())
        self._members[number] = PoolMember(
            number, handle, handle.__ray_ready__.remote(), handle.start.remote(state), state
        )

    def next(self, left_transitions: int) -> FinishedWindow | None:
        """Return the next finished window, or None if there is none within POLL_SECONDS.

        At most ``left_transitions`` are played, including those in progress.
        """
        self._match_actor_count()
        self._submit(left_transitions)
        asked = time.monotonic()
        delivered = self._first_finished()
        self._kill_hung()
        if delivered is None:
            self._waited_seconds += time.monotonic() - asked
            if self._waited_seconds > self._placement.stall_seconds:
                raise StallError(
                    f"no actor delivered a window for {self._placement.stall_seconds:g} s", self.first_error
                )
            return None
        self._waited_seconds = 0.0
        if not self._placement.lockstep:
            self._submit(left_transitions - delivered.sampled.transitions)
        return delivered

    def _match_actor_count(self) -> None:
        wanted = 1 if self._placement.lockstep else self._wanted()
        staying = sorted(number for number, member in self._members.items() if not member.leaving)
        for number in staying[wanted:]:
            self._members[number].leaving = True
        for number in range(max(0, wanted - len(staying))):
            free = next(n for n in range(len(self._members) + 1) if n not in self._members)
            self._add(free)
            self._notice(f"Ray: actor {free} joins ({len(staying) + number + 1} of {wanted}).")
        for number, member in list(self._members.items()):
            if member.leaving and not member.tasks:
                ray.kill(member.handle)
                del self._members[number]
                self._notice(f"Ray: actor {number} left.")

    def _submit(self, left_transitions: int) -> None:
        free = left_transitions - sum(task.max_transitions for m in self._members.values() for task in m.tasks)
        depth = 1 if self._placement.lockstep else self._placement.queue_windows
        for waiting in range(depth):  # one window for each actor first, then a second one
            for member in self._members.values():
                budget = min(free, self._window_transitions)
                # An actor that waits for a free CPU gets no window, because other actors need its share of the budget.
                if not member.ready or member.leaving or len(member.tasks) > waiting or budget <= 0:
                    continue
                window, report = member.handle.sample.options(num_returns=2).remote(budget)
                if not member.tasks:
                    member.busy_since = time.monotonic()
                member.tasks.append(WindowRequest(window, report, budget))
                free -= budget

    def _first_finished(self) -> FinishedWindow | None:
        starting = {member.started: member for member in self._members.values() if not member.ready}
        playing = {member.tasks[0].report: member for member in self._members.values() if member.tasks}
        # Serve the actor that started its window first, so that none waits forever.
        order = sorted(playing, key=lambda report: playing[report].busy_since)
        if not order and not starting:
            time.sleep(POLL_SECONDS)
            return None
        finished, _ = ray.wait([*order, *starting], timeout=POLL_SECONDS, fetch_local=False)
        self._mark_started(starting)
        reference = next((one for one in finished if one in playing), None)
        if reference is None:
            return None
        member = playing[reference]
        try:
            sampled: Sampled = ray.get(reference)
        except RayError as error:
            # A NaN in an environment or in θ would reach the other actors as well.
            if (own := unwrap_run_error(error)) is not None:
                raise own from None
            self._replace_actor(member, describe_error(error))
            return None
        task = member.tasks.popleft()
        now = time.monotonic()
        self._longest_window_seconds = max(self._longest_window_seconds, now - member.busy_since)
        member.busy_since = now
        self._failures_in_a_row = 0
        self._any_delivered = True
        self._queued.append(len(_finished([task.report for m in self._members.values() for task in m.tasks])))
        return FinishedWindow(task.window, sampled, member.number)

    def _mark_started(self, starting: dict[Ref, PoolMember]) -> None:
        if not starting:
            return
        started, _ = ray.wait(list(starting), num_returns=len(starting), timeout=0, fetch_local=False)
        for reference in started:
            member = starting[reference]
            try:
                ray.get(reference)
            except RayError as error:
                # If no actor has delivered yet, the run itself is misconfigured. Later, blame the node that the actor
                # started on.
                if (own := unwrap_run_error(error)) is not None and not self._any_delivered:
                    raise own from None
                self._replace_actor(member, describe_error(error))
                continue
            member.ready, member.state, member.busy_since = True, None, time.monotonic()

    def _kill_hung(self) -> None:
        """Replace actors that take too long to start or to play one window.

        This excludes actors that wait for a free CPU, or that have finished a window and wait for the driver.
        """
        now, limit = time.monotonic(), self._placement.hang_seconds
        if now - self._looked_for_hung < POLL_SECONDS:
            return
        self._looked_for_hung = now
        playing = [member for member in self._members.values() if member.ready and member.tasks]
        finished = set(_finished([member.tasks[0].report for member in playing]))
        for member in playing:
            if member.tasks[0].report in finished:
                member.busy_since = now
            elif now - member.busy_since > limit:
                self._replace_actor(member, f"it played one window for more than {limit:g} s and was killed")
        starting = [member for member in self._members.values() if not member.ready]
        placed = set(_finished([member.placed for member in starting]))
        for member in starting:
            if member.placed in placed:
                member.busy_since = min(member.busy_since, now)
            if now - member.busy_since > limit:
                self._replace_actor(member, f"it did not start within {limit:g} s and was killed")

    def _replace_actor(self, member: PoolMember, why: str) -> None:
        """Drop what the actor has not delivered, and start another one in its place."""
        if self._members.get(member.number) is not member:
            return
        self.first_error = self.first_error or why
        self._check_others()
        self._failures_in_a_row += 1
        if self._failures_in_a_row > FAILURES_PER_ACTOR * max(1, len(self._members)):
            raise StallError(f"{self._failures_in_a_row} actors in a row failed before any window", self.first_error)
        self.dropped_total += len(member.tasks)
        self.replaced_total += 1
        ray.kill(member.handle)
        del self._members[member.number]
        if member.leaving:
            return
        self._add(member.number)
        self._notice(
            f"Ray: replaced lost actor {member.number} and dropped {len(member.tasks)} windows: {one_line(why)}"
        )

    def metrics(self) -> dict[str, float | list[float]]:
        queued, self._queued = self._queued, []
        return {
            "ray/actors": sum(member.ready for member in self._members.values()),
            "ray/queue_windows": sum(queued) / len(queued) if queued else 0.0,
            "ray/replaced_total": self.replaced_total,
            "ray/dropped_windows_total": self.dropped_total,
        }

    def state_dicts(self) -> dict[int, State]:
        """Return the states of the live actors; each answers after its requested windows.

        An actor that takes much longer than any window so far is left out. A user who stops a run with a hung
        environment should not wait until that is certain.
        """
        staying = [member for member in self._members.values() if not member.leaving]
        states = {member.number: member.state for member in staying if member.state is not None}
        asked = {member.handle.state_dict.remote(): member.number for member in staying if member.ready}
        a_window = min(self._placement.hang_seconds, SAVE_SECONDS + 2 * self._longest_window_seconds)
        patience = a_window * self._placement.queue_windows
        for reference in _finished(list(asked), patience):
            try:
                states[asked[reference]] = ray.get(reference)
            except RayError:
                continue  # It is replaced at the next delivery. After a resume it starts new episodes.
        return states

    def close(self) -> None:
        for member in self._members.values():
            ray.kill(member.handle)
        self._members.clear()


def _finished(references: list[Ref], patience_seconds: float = 0.0) -> list[Ref]:
    """Return the references that are available after waiting for all of them for ``patience_seconds``."""
    if not references:
        return []
    there, _ = ray.wait(references, num_returns=len(references), timeout=patience_seconds, fetch_local=False)
    return list(there)
