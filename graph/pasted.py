"""A module pasted or dropped outside of the chat: kept as a file, and read as a target. It is not run here."""

from __future__ import annotations

import hashlib

from graph.chat_source import complete_imports, examine_source
from graph.folders import prepare_home, write_whole
from graph.settings import Settings
from memory.errors import BadInput
from memory.records import Target
from tools.problem import parse_target

MAX_CHARS = 1_000_000


def keep_module(code: str, settings: Settings, *, inputs: str = "", init: str = "") -> Target:
    """The code, with imports that it lacks, as a file under `home`; its module as a target.

    inputs, init: as `warpsmith optimize` takes them; empty where the file says it. Raises: BadInput with the remedy.
    """
    if not code.strip():
        raise BadInput("there is no code; paste a module or choose a file")
    if len(code) > MAX_CHARS:
        raise BadInput(f"the file has {len(code):,} characters; at most {MAX_CHARS:,} are taken")
    whole, _ = complete_imports(code)
    digest = hashlib.sha256(whole.encode(errors="replace")).hexdigest()[:16]
    path = prepare_home(settings) / "modules" / f"module_{digest}.py"
    path.parent.mkdir(exist_ok=True)
    write_whole(path, whole)
    facts = examine_source(whole)
    named = str(path)
    if facts is not None and "Model" not in facts.modules and facts.candidates:
        if len(facts.candidates) > 1:
            listed = ", ".join(facts.candidates)
            raise BadInput(f"the code has several modules ({listed}); name the one that is meant `Model`")
        named = f"{path}:{facts.candidates[0]}"
    return parse_target(named, inputs=inputs.strip() or None, init=init.strip() or None)
