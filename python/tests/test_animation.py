"""The moving picture of a mesh: the worst minute, everything on the air in it, one file that needs nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from millpond import api
from millpond.errors import UsageError
from millpond.show.mesh import animation

ROOT = Path(__file__).parents[2]
MESH = ROOT / "scenarios" / "mesh.toml"


@pytest.fixture(scope="module")
def animated(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], api.Run]:
    folder = tmp_path_factory.mktemp("animation")
    done = api.run(MESH, changes={"run.for": "150 s"}, animation=folder / "mesh.html", out=folder / "out", report=False)
    page = (folder / "mesh.html").read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return page, json.loads(found[1]), done


def test_an_animation_is_one_small_file_that_fetches_nothing(animated: tuple[str, dict[str, Any], api.Run]) -> None:
    page, _, _ = animated
    assert len(page.encode()) <= 2_000_000
    assert not re.search(r"(src|href)=|url\(|import\(|fetch\(|https?://", page)
    assert "@DATA@" not in page
    assert "@TITLE@" not in page
    assert "prefers-reduced-motion" in page
    assert "keydown" in page


def test_an_animation_holds_every_frame_of_its_minute(animated: tuple[str, dict[str, Any], api.Run]) -> None:
    _, data, done = animated
    table = done.results.table("frames").to_pandas()
    begins = data["begins"] * 1_000_000
    within = table[(table.t_us >= begins) & (table.t_us < begins + animation.LASTS * 1_000_000)]
    frames = data["frames"]
    assert len(frames["what"]) == len(within) > 1_000
    assert all(len(column) == len(within) for column in frames.values())
    fates = [animation.FATES[what % len(animation.FATES)] for what in frames["what"]]
    for fate in animation.FATES:
        assert fates.count(fate) == int((within.fate == fate).sum()), fate
    first = within.sort_values("t_us", kind="stable").iloc[0]
    assert data["nodes"][frames["from"][0]][0] == first.node
    assert len(data["queues"]["full"]) == animation.LASTS * 10
    assert data["queues"]["most"] > 1


def test_an_animation_shows_messages_of_rpl(tmp_path: Path) -> None:
    done = api.run(
        ROOT / "scenarios" / "mesh-rpl.toml",
        changes={"run.for": "200 s"},
        animation=tmp_path / "mesh.html",
        out=tmp_path / "out",
        report=False,
    )
    page = (tmp_path / "mesh.html").read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    table = done.results.table("frames").to_pandas()
    begins = data["begins"] * 1_000_000
    within = table[(table.t_us >= begins) & (table.t_us < begins + animation.LASTS * 1_000_000)]
    kinds = [animation.KINDS[what // len(animation.FATES)] for what in data["frames"]["what"]]
    for kind in animation.KINDS:
        assert kinds.count(kind) == int((within.kind == kind).sum()), kind
    assert kinds.count("dio") > 0
    assert kinds.count("dao") > 0
    # what is for all in range is for no node by its number
    for kind, to in zip(kinds, data["frames"]["to"], strict=True):
        assert (to == animation.EVERYONE) == (kind in ("dio", "dis"))
    # the tree is the one at the end
    parents = dict(
        zip(*(done.results.table("nodes").column(name).to_pylist() for name in ("node", "parent")), strict=True)
    )
    assert {node[0]: node[4] for node in data["nodes"]} == parents


def test_the_worst_minute_is_the_one_with_most_collisions() -> None:
    times = np.array([5, 70, 71, 72, 100, 131, 140]) * 1_000_000
    collided = animation.FATES.index("collided")
    assert animation.worst(times, np.full(7, collided)) == 41
    fates = np.array([collided, 0, 0, 0, 0, 0, 0])
    assert animation.worst(times, fates) == 0
    assert animation.worst(times[:1], fates[:1]) == 0


def test_what_cannot_be_animated_is_refused_before_it_is_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.html"):
        api.run(MESH, animation=tmp_path / "mesh.mp4")
    with pytest.raises(UsageError, match="there is no folder"):
        api.run(MESH, animation=tmp_path / "no" / "mesh.html")
    with pytest.raises(UsageError, match="leave trace none out"):
        api.run(MESH, animation=tmp_path / "mesh.html", trace=["none"])
    with pytest.raises(UsageError, match=r"has no \[mesh\]"):
        api.run(ROOT / "scenarios" / "star.toml", animation=tmp_path / "mesh.html")
