"""The page of the archive: verified winners found by words, code or a module, compared, and used as seeds."""

from __future__ import annotations

from typing import Literal, cast

import streamlit as st

from graph.seeds import find_innovation
from graph.session import capture_target, record_run
from memory.archive import Archive
from memory.archive_entry import ArchiveFilter, Hit
from memory.errors import BadInput
from memory.records import DType, Innovation, Problem
from memory.store import Store
from tools.devices.build import gpu_of
from tools.gpus import GPUS
from ui.innovation_view import SHORT, draw_comparison, draw_hits, draw_innovation
from ui.links import asked, go
from ui.module_form import ask_module
from ui.resources import archive, runner, settings, store
from ui.words import as_sentence, nothing_yet

SHOWN = 25
ANYTHING = "fused kernel"
"""What is searched for where nobody has asked for anything."""
_ANY = "any"


def page() -> None:
    """Draw it: `?text=…` or `?problem=HASH`, with the filters' names; `&id=ID&with=ID` are open."""
    st.title("Archive")
    kept, opened = archive(), store()
    if not kept.search(ANYTHING, limit=1):
        nothing_yet(
            "The archive is empty.",
            "It keeps the verified winner of every run that improves: start one in the chat, or with "
            "`warpsmith optimize examples/layernorm_gelu.py`.",
        )
        return
    problem = _by_module(opened)
    text = st.text_area(
        "Words or CUDA code", asked("text") or "", placeholder="softmax over the last dimension", height=70
    ).strip()
    _say("text", text)
    where = _filters()
    hits = _found(kept, text, problem, where)
    if not hits:
        nothing_yet("Nothing fits.", "Loosen a filter, or use other words.")
        return
    if text or problem is not None:
        st.caption("The most alike first. Tick one to open it, two to compare them.")
    else:
        st.caption(
            f"Some of the archive, {SHOWN} at most; search to find others. Tick one to open it, two to compare them."
        )
    alike = bool(text) or problem is not None
    ticked = draw_hits(hits, alike=alike, key=f"hits-{text}-{where}-{problem.name if problem else ''}")
    if ticked:
        _say("id", ticked[0][:SHORT])
        _say("with", ticked[1][:SHORT] if len(ticked) > 1 else "")
    _draw_open(kept, opened)


def _draw_open(kept: Archive, opened: Store) -> None:
    names = [name for name in (asked("id"), asked("with")) if name is not None]
    chosen: list[tuple[str, Innovation]] = []
    for name in names:
        try:
            chosen.append(find_innovation(name, kept))
        except BadInput as error:
            st.warning(as_sentence(str(error).partition(";")[0]))
    if len(chosen) == 2:
        draw_comparison(chosen[0], chosen[1])
    elif chosen:
        entry_id, innovation = chosen[0]
        draw_innovation(entry_id, innovation, known_run=_known(innovation, opened))
        _draw_seed(entry_id, kept, opened)


def _draw_seed(entry_id: str, kept: Archive, opened: Store) -> None:
    """How to begin a run with it, and a form that does."""
    st.subheader("Use as a seed")
    st.caption(
        "The first generation of the run begins with this program, if it is valid for the module; the verifier then "
        "judges it like any other."
    )
    st.code(f"warpsmith optimize module.py --seed-with {entry_id[:SHORT]}", language="bash")
    target = ask_module("Start a run with it", settings(), key=f"seed-{entry_id[:SHORT]}")
    if target is None:
        return
    seeded = settings().model_copy(update={"seeds": entry_id})
    with st.spinner("capturing the module in a child process"):
        captured = capture_target(target, seeded)
    run = record_run(captured, seeded, opened, archive=kept)
    runner().start(run.id)
    go("runs", run=run.id)


def _by_module(opened: Store) -> Problem | None:
    """The module whose like is searched for; it is in the store, so that its hash in the URL is enough."""
    name = asked("problem")
    problem = opened.problem(name) if name is not None else None
    if problem is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"Like the module {problem.name}")
            if st.button("Search by words again", icon=":material/close:"):
                st.query_params.pop("problem", None)
                st.rerun()
        return problem
    with st.expander("Search by a module"):
        target = ask_module("Find its like", settings(), key="by-module")
    if target is not None:
        with st.spinner("capturing the module in a child process"):
            captured = capture_target(target, settings())
        st.query_params["problem"] = opened.put_pair(captured.problem, captured.reduced)
        st.rerun()
    return None


def _found(kept: Archive, text: str, problem: Problem | None, where: ArchiveFilter) -> list[Hit]:
    if text or problem is None:
        return kept.search(text or ANYTHING, limit=SHOWN, where=where)
    arch = gpu_of(settings().device_spec).arch
    hits = kept.neighbours(problem, arch, limit=4 * SHOWN)
    return [hit for hit in hits if _fits(hit.innovation, where)][:SHOWN]


def _fits(found: Innovation, where: ArchiveFilter) -> bool:
    origin = found.provenance
    fields = {
        "dtype": found.dtype.value,
        "arch": found.arch,
        "time_source": origin.time_source,
        "verification": found.verification,
    }
    equal = all(fields[name] == value for name, value in where.equalities().items())
    return equal and set(where.members()) <= set(ArchiveFilter(operations=found.operations).members())


def _filters() -> ArchiveFilter:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        operation = st.text_input(
            "Operation", asked("operation") or "", placeholder="such as softmax", width=180
        ).strip()
        dtype = _choice("dtype", [dtype.value for dtype in DType])
        arch = _choice("arch", sorted({gpu.arch for gpu in GPUS.values()}))
        verification = _choice("verification", ["trials", "soak"])
        source = _choice("time", ["measured", "modelled"])
    _say("operation", operation)
    return ArchiveFilter(
        operations=tuple(word.strip() for word in operation.split(",") if word.strip()),
        dtype=DType(dtype) if dtype else None,
        arch=arch or None,
        verification=cast(Literal["trials", "soak"], verification) if verification else None,
        time_source=cast(Literal["measured", "modelled"], source) if source else None,
    )


def _choice(name: str, values: list[str]) -> str:
    """One filter, which is in the URL too; empty for any."""
    kept = asked(name)
    place = values.index(kept) + 1 if kept in values else 0
    picked = st.selectbox(name.capitalize(), [_ANY, *values], index=place, width=130)
    _say(name, "" if picked == _ANY else picked)
    return "" if picked == _ANY else picked


def _say(name: str, value: str) -> None:
    """Keep a word in the URL; an empty one leaves it."""
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)


def _known(innovation: Innovation, opened: Store) -> bool:
    try:
        opened.run(innovation.provenance.run_id)
    except BadInput:
        return False
    return True
