"""kill -9 at any moment: what a search has found and paid for is there when it goes on, and nothing else is.

Paid twice would be: a program that the device is asked about although its verdict was in the store before, or a model
that is asked what it has answered before. What was under way when the kill came has no verdict, and is asked again.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from graph.build import open_store
from graph.session import capture_target
from graph.state import NodeName
from tests.agents.model_server import Asked, ModelServer, Reply, Say, serving
from tests.agents.scripts import GOOD, program_answer, team
from tests.graph.searching import (
    RUN,
    Kind,
    Order,
    Outcome,
    Point,
    asked,
    begin,
    ended,
    outcome,
    prepare,
    search,
    settings_of,
    trials_of,
    verdicts,
)
from tests.problems import module_text
from tools.problem import Captured
from tools.target import parse_target

WORKERS = 2
"""Searches at once."""


@dataclass(frozen=True)
class Peace:
    """A search that nobody killed, to hold the others against."""

    captured: Captured
    home: Path
    outcome: Outcome
    counts: dict[str, int]

    def another(self, home: Path, **changes: object) -> Path:
        """The same run at its beginning, in a home of its own."""
        return prepare(home, self.captured, trials_of(self.home), **changes)


@pytest.fixture(scope="module")
def peace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peace]:
    home = tmp_path_factory.mktemp("peace")
    module = home / "scaled.py"
    module.write_text(module_text(64, 64))
    captured = capture_target(parse_target(str(module)), settings_of(home))
    prepare(home, captured, None)
    done = search(Order(home, count=True))
    assert not done.killed and done.code == 0
    found = outcome(home)
    assert len(found.verdicts) == len(asked(home)) == 12
    yield Peace(captured, home, found, done.counts)


@dataclass
class Life:
    """A home whose search is killed and goes on, and what was paid for before each kill."""

    home: Path
    kills: int = field(default=0, kw_only=True)

    def order(self, point: Point | None = None, answer: str = "") -> Order:
        """What a process is told."""
        return Order(self.home, point, answer)

    def go_on(self, point: Point | None = None, *, answer: str = "") -> bool:
        """One process on the run; True where it was killed. Fails where it asks for what the store had."""
        had, asked_before = verdicts(self.home), len(asked(self.home))
        done = search(self.order(point, answer))
        self._judge(had, asked_before)
        # The kill may have come when there was nothing left to do.
        assert done.code == 0 or "has ended (improved)" in done.error, done.error
        self.kills += done.killed
        return done.killed

    def go_on_for(self, seconds: float) -> bool:
        """The same, killed from outside."""
        had, asked_before = verdicts(self.home), len(asked(self.home))
        order = self.order()
        process = begin(order)
        process.join(seconds)
        process.kill()
        done = ended(process, order)
        self._judge(had, asked_before)
        self.kills += done.killed
        return done.killed

    def _judge(self, had: dict[str, str], asked_before: int) -> None:
        now, new = verdicts(self.home), asked(self.home)[asked_before:]
        assert had.items() <= now.items(), "a verdict was lost or replaced"
        assert not set(new) & set(had), "what the store had was judged again"
        assert len(set(new)) == len(new), "one process judged a program twice"


def test_a_search_that_is_killed_at_the_end_of_every_node_in_turn_finds_the_same(
    peace: Peace, tmp_path: Path
) -> None:
    life = Life(peace.another(tmp_path / "home"))
    for node in NodeName:
        nth = 2 if node in (NodeName.PROPOSE, NodeName.EVALUATE) else 1
        assert life.go_on(Point("leave", nth, node.value)), node
    assert outcome(life.home) == peace.outcome


def test_a_search_that_is_killed_at_the_start_of_every_node_and_amid_each_fan_out_finds_the_same(
    peace: Peace, tmp_path: Path
) -> None:
    life = Life(peace.another(tmp_path / "home"))
    for point in (
        *(Point("enter", 1, name) for name in ("baseline", "plan")),
        Point("enter", 3, "propose"),
        Point("enter", 3, "evaluate"),
        Point("ask", 2),
        Point("ask", 2, after=True),
        *(Point("enter", 1, name) for name in ("critique", "select", "plan", "propose")),
        Point("leave", 4, "propose"),
        Point("ask", 1, after=True),
        Point("leave", 3, "evaluate"),
        *(Point("enter", 1, name) for name in ("select", "verify", "review", "archive", "export", "finish")),
    ):
        assert life.go_on(point), point
    assert not life.go_on()
    assert outcome(life.home) == peace.outcome


def random_lives(counts: dict[str, int], many: int) -> list[tuple[Point, ...]]:
    """Moments to be killed at, one or two for a search: any statement of SQL, any call of the archive."""
    random = Random(20)
    lives = []
    for _ in range(many):
        points = []
        for _ in range(random.choice((1, 1, 2))):
            kind: Kind = "archive" if random.random() < 0.15 else "sql"
            points.append(Point(kind, random.randint(1, counts[kind]), after=random.random() < 0.5))
        lives.append(tuple(points))
    return lives


def test_a_search_that_is_killed_at_any_statement_finds_the_same(peace: Peace, tmp_path: Path) -> None:
    def live(numbered: tuple[int, tuple[Point, ...]]) -> int:
        number, points = numbered
        life = Life(peace.another(tmp_path / str(number)))
        for point in points:
            if not life.go_on(point):
                break
        if life.kills == len(points):
            life.go_on()
        assert outcome(life.home) == peace.outcome, points
        return life.kills

    with ThreadPoolExecutor(WORKERS) as pool:
        kills = list(pool.map(live, enumerate(random_lives(peace.counts, 20))))
    assert sum(kills) >= 20 and min(kills) >= 1


def test_a_search_that_is_killed_at_any_time_finds_the_same(peace: Peace, tmp_path: Path) -> None:
    begun = time.monotonic()
    search(Order(peace.another(tmp_path / "timed")))
    whole = time.monotonic() - begun
    random = Random(7)
    life = Life(peace.another(tmp_path / "home"))
    for share in (0.02, *(random.uniform(0.2, 0.9) for _ in range(5))):
        life.go_on_for(share * whole)
    life.go_on()
    assert life.kills >= 1
    assert outcome(life.home) == peace.outcome


def test_a_review_that_is_killed_is_written_down_once(peace: Peace, tmp_path: Path) -> None:
    life = Life(peace.another(tmp_path / "home", review=True))
    assert not life.go_on()
    assert life.go_on(Point("leave", 1, "review"), answer="approved")
    time.sleep(1)  # reviews carry the second in which they were given
    assert not life.go_on()
    found = outcome(life.home)
    assert found.reviews == ["approved so be it"]
    assert (found.run, found.verdicts) == (peace.outcome.run, peace.outcome.verdicts)


# --- with models ------------------------------------------------------------------------------------------------


@dataclass
class ModelLife(Life):
    """A life with models, who answer from a script on a real socket."""

    server: ModelServer
    needed: Counter[str] = field(default_factory=Counter)
    """Prompts of the whole search; a few slots are given the same one."""

    def go_on(self, point: Point | None = None, *, answer: str = "") -> bool:
        answered, before = prompts_answered(self.home), len(self.server.asked)
        killed = super().go_on(point, answer=answer)
        asked_now = Counter(as_prompt(one) for one in self.server.asked[before:])
        assert asked_now <= self.needed - answered, "what was answered was asked again"
        return killed

    def order(self, point: Point | None = None, answer: str = "", *, count: bool = False) -> Order:
        endpoint = ("OPENAI_BASE_URL", self.server.url), ("OPENAI_API_KEY", "sk-scripted")
        return Order(self.home, point, answer, count=count, environment=endpoint)


def prompts_answered(home: Path) -> Counter[str]:
    """What the store has answers to."""
    with open_store(settings_of(home)) as store:
        return Counter(e.prompt for e in store.events(RUN) if e.agent == "model" and e.tokens_in is not None)


def as_prompt(asked: Asked) -> str:
    """A request as the store has it."""
    return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in asked.body["messages"])


def various(asked: Asked) -> Reply:
    """A program for every request, another one for another."""
    digits = int(hashlib.sha256(as_prompt(asked).encode()).hexdigest(), 16) % 1000
    return Say(program_answer(GOOD.replace("x[i] *", f"{digits}.0f * x[i] *")))


def test_a_search_with_models_that_is_killed_anywhere_asks_nothing_that_was_answered(
    peace: Peace, tmp_path: Path
) -> None:
    def home(name: str) -> Path:
        return peace.another(tmp_path / name, models="gpt-5")

    with serving(team(various)) as server:
        whole = ModelLife(home("whole"), server)
        counts = search(whole.order(count=True)).counts
        expected, needed = outcome(whole.home), prompts_answered(whole.home)
        assert len(server.asked) == needed.total() >= 10
    assert sum("-001-" in str(c["id"]) for c in expected.candidates) == 4

    def live(numbered: tuple[int, tuple[Point, ...]]) -> int:
        number, points = numbered
        with serving(team(various)) as server:
            life = ModelLife(home(str(number)), server, needed)
            for point in (*points, None):
                life.go_on(point)
            assert outcome(life.home) == expected, points
            return life.kills

    with ThreadPoolExecutor(WORKERS) as pool:
        kills = list(pool.map(live, enumerate(random_lives(counts, 6))))
    assert sum(kills) >= 6
