"""A job: one preset, or a variant of it, trained on one environment with one seed, in its own run folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gdi.errors import UserError
from gdi.sweep.peer_settings import check_library, is_peer, peer_problems, shared_config
from gdi.sweep.plan import Plan, Value
from gdi.sweep.settings import check_settings, job_settings, train_words

if TYPE_CHECKING:
    from gdi.config import Config

RUNS = "runs"
LONGEST_SLUG = 100
# One thread per job: the cores serve parallel jobs.
THREADS = "run.threads"


@dataclass(frozen=True)
class Job:
    """One run of a sweep; ``str`` is what the screen shows."""

    env: str
    preset: str
    variant: str
    seed: int
    steps: int
    settings: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.agent} {self.env} seed {self.seed}"

    @property
    def agent(self) -> str:
        return f"{self.preset}+{self.variant}" if self.variant else self.preset

    @property
    def is_peer(self) -> bool:
        return is_peer(self.preset)

    @property
    def name(self) -> str:
        """Return the name of the job's files. No other job of the plan has it."""
        return "~".join((slug(self.env), self.agent, f"seed-{self.seed}"))

    def folder(self, sweep: Path) -> Path:
        """Return the job's run folder."""
        return sweep / RUNS / slug(self.env) / self.agent / f"seed-{self.seed}"

    def words(self) -> list[str]:
        """Return the words after ``gdi train`` that train this job."""
        own = {THREADS: 1, **self.settings}
        return [self.preset, f"--env={self.env}", f"--steps={self.steps}", f"--seed={self.seed}", *train_words(own)]


def slug(env: str) -> str:
    """Return the name of an environment's folder: ``MinAtar-Breakout-v0``."""
    name = re.sub(r"[^\w.+-]+", "-", env).strip("-.") or "env"
    if len(name.encode()) <= LONGEST_SLUG:
        return name
    return f"{sha256(env.encode()).hexdigest()[:12]}-{name[-40:].strip('-.')}"


def all_jobs(plan: Plan) -> list[Job]:
    """Return the jobs seed by seed, then environment by environment.

    A sweep that is cut short has therefore compared all agents on as much as possible.
    """
    return [
        Job(env, preset, variant, seed, plan.steps, job_settings(plan, preset, env, variant, seed))
        for seed in plan.seeds
        for env in plan.envs
        for preset in plan.presets
        for variant in variants_of(plan, preset, env, seed)
    ]


def variants_of(plan: Plan, preset: str, env: str, seed: int) -> list[str]:
    """Return the variants of a preset that have such a job; the preset itself is the empty one."""
    own = plan.preset.get(preset)
    if own is not None and not own.covers(preset, env, seed):
        return []
    return ["", *(name for name, change in plan.variants.items() if change.covers(preset, env, seed))]


def config_of(job: Job) -> Config:
    """Return the job's config, by the code of ``gdi train``."""
    from gdi.cli.train import parse  # not at the top, because the driver reads status without it

    return parse(job.words(), "gdi train").config


def check_plan(plan: Plan) -> list[Job]:
    """Return the jobs of a plan, or raise UserError with its first problem. Write nothing."""
    check_library(plan.presets)
    check_settings(plan)
    jobs = all_jobs(plan)
    slugs: dict[str, str] = {}
    for env in plan.envs:
        if slugs.setdefault(slug(env).casefold(), env) != env:
            raise UserError(f"{env} and {slugs[slug(env).casefold()]} would share a folder: sweep them apart.")
    for name in plan.variants:
        if not any(job.variant == name for job in jobs):
            raise UserError(f"variants.{name} has no job: widen its presets, envs or seeds.")
    for job in one_of_each(jobs):
        check_job(job)
    return jobs


def check_job(job: Job) -> None:
    """Raise UserError if the job's settings are wrong."""
    try:
        if job.is_peer:
            for problem in peer_problems(job.settings):
                raise UserError(problem)
            shared_config(job.env, job.seed, job.steps, job.settings)
        else:
            config_of(job)
    except UserError as error:
        raise UserError(f"{job.agent} on {job.env}: {error}") from None


def one_of_each(jobs: Sequence[Job]) -> Iterator[Job]:
    """Yield the first job of each environment and agent, and of each that has other settings for some seeds."""
    seen = set()
    for job in jobs:
        kind = repr((job.env, job.agent, job.settings))
        if kind not in seen:
            seen.add(kind)
            yield job


def difference(old: Plan, new: Plan) -> str | None:
    """Return what a new plan takes away from an old one, or changes in it. A plan may grow."""
    if old.steps != new.steps:
        return f"steps was {old.steps} and is now {new.steps}"
    known = {replace(job, settings={}): job.settings for job in all_jobs(new)}
    for job in all_jobs(old):
        now = known.get(replace(job, settings={}))
        if now is None:
            return f"{job} is not in it any more"
        for name in (*job.settings, *now):
            before, after = job.settings.get(name), now.get(name)
            if before != after:
                return f"{name} of {job.agent} was {_shown(before)} and is now {_shown(after)}"
    return None


def _shown(value: Value | None) -> str:
    return "not set" if value is None else repr(list(value) if isinstance(value, tuple) else value)
