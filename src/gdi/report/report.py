"""The report of one run or of many: which sections it has, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gdi.report.document import Document, Section
from gdi.report.material import Material, make_material
from gdi.report.runs import Run
from gdi.report.sections.control import control
from gdi.report.sections.curves import curves
from gdi.report.sections.games import games
from gdi.report.sections.head import head
from gdi.report.sections.media import media
from gdi.report.sections.paid import paid
from gdi.report.sections.results import differences, evaluations
from gdi.report.sections.sureness import sureness
from gdi.report.sections.vitals import vitals

# Each returns its section, or None if the runs have no data for it.
SECTIONS: tuple[Callable[[Material], Section | None], ...] = (
    head,
    games,
    curves,
    control,
    paid,
    sureness,
    vitals,
    evaluations,
    differences,
    media,
)


def report(runs: Sequence[Run], baseline: str = "") -> Document:
    """Return the report of these runs; ``baseline`` is the agent whose mean score is 1 in every environment."""
    material = make_material(runs, baseline)
    sections = (make(material) for make in SECTIONS)
    return Document(title_of(material), tuple(section for section in sections if section is not None))


def title_of(material: Material) -> str:
    """Return a title such as ``gdi-i3 on MinAtar/Breakout-v0``."""
    agents, envs = material.agents, material.envs
    who = agents[0] if len(agents) == 1 else f"{len(agents)} agents"
    where = (envs[0] or "an unknown task") if len(envs) == 1 else f"{len(envs)} environments"
    return f"{who} on {where}"
