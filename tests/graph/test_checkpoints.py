"""Pruned checkpoints: the file stays small, and a run goes on from its newest."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph.checkpoints import KEPT, open_checkpoints, prune
from memory.errors import DiskFull


@dataclass(frozen=True)
class Counted:
    """A state that grows."""

    steps: Annotated[list[str], operator.add] = field(default_factory=list)


Counting = CompiledStateGraph[Counted, None, Counted, Counted]


def counting(saver: SqliteSaver, fails_at: int) -> Counting:
    """Counts to 20; raises at a step where it is told to."""

    def step(state: Counted) -> dict[str, list[str]]:
        if len(state.steps) == fails_at:
            raise RuntimeError("told to")
        return {"steps": ["x" * 1000]}

    graph = StateGraph(Counted)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges(
        "step", lambda state: END if len(state.steps) >= 20 else "step", [END, "step"]
    )
    return graph.compile(checkpointer=saver)


def versions(saver: SqliteSaver, thread: str) -> int:
    return sum(1 for _ in saver.list({"configurable": {"thread_id": thread}}))


def test_a_pruned_run_goes_on_and_others_keep_theirs(tmp_path: Path) -> None:
    with open_checkpoints(tmp_path / "c.db") as saver:
        for thread in ("a", "b"):
            try:
                counting(saver, 12).invoke(
                    Counted(), {"configurable": {"thread_id": thread}}, durability="sync"
                )
            except RuntimeError as error:
                assert str(error) == "told to"
        before = versions(saver, "b")
        prune(saver, "a")
        prune(saver, "a")
        prune(saver, "nobody")
        assert versions(saver, "a") == KEPT and versions(saver, "b") == before > KEPT
        orphans = (
            "SELECT COUNT(*) FROM writes WHERE checkpoint_id NOT IN (SELECT checkpoint_id FROM checkpoints)"
        )
        assert saver.conn.execute(orphans).fetchone() == (0,)
    with open_checkpoints(tmp_path / "c.db") as saver:
        done = counting(saver, -1).invoke(None, {"configurable": {"thread_id": "a"}}, durability="sync")
    assert len(done["steps"]) == 20


def test_a_tasks_writes_are_kept_whole_or_not_at_all_where_the_disk_is_full(tmp_path: Path) -> None:
    """A task of which something is kept counts as done when a run resumes."""
    config: RunnableConfig = {"configurable": {"thread_id": "a", "checkpoint_ns": "", "checkpoint_id": "1"}}
    with open_checkpoints(tmp_path / "c.db") as saver:
        saver.put_writes(config, [("steps", ["x"])], "first")
        (pages,) = saver.conn.execute("PRAGMA page_count").fetchone()
        saver.conn.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(DiskFull, match=r"c\.db' could not be written"):
            saver.put_writes(config, [("steps", ["x"]), ("large", ["x" * 100_000])], "second")
        saver.conn.execute("PRAGMA max_page_count = 1000000")
        kept = "SELECT task_id, channel FROM writes ORDER BY task_id, idx"
        assert saver.conn.execute(kept).fetchall() == [("first", "steps")]
        saver.put_writes(config, [("steps", ["x"]), ("large", ["x" * 100_000])], "second")
        assert len(saver.conn.execute(kept).fetchall()) == 3
