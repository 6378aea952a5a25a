"""The chat's engine: what a person types becomes a search that another process works on, and answers about it.

Used alike by the command line and by pages: it yields parts and prints nothing. Not here: reading messages
(graph.chat_intents), what is told of runs (graph.chat_answers), files of conversations (graph.chat_history).
Invariants: what both sides say is kept before it is shown, progress excepted; what was understood is said before it is
done; at most one question is open; every error is one part. The engine may die at any moment: runs go on without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from graph import chat_speech as speech
from graph.build import open_store
from graph.chat_answers import Desk, run_of, tell_candidate, tell_runs, tell_status, tell_why, tell_winner
from graph.chat_constraints import Constraints
from graph.chat_history import Clock, Conversation, Pending, Standing
from graph.chat_intents import (
    Approve,
    Confirm,
    Dismiss,
    Explain,
    Export,
    Help,
    Hint,
    Intent,
    ListRuns,
    Mark,
    Optimize,
    Reject,
    Resume,
    RollBack,
    Status,
    Stop,
    Unknown,
    UseRun,
    WhyFailed,
    read_details,
    read_intent,
)
from graph.chat_parts import ChatPart, Failure, ProgressLine, Question, Text
from graph.chat_phrases import CANDIDATE_ID
from graph.chat_reader import Reader
from graph.chat_requests import (
    WHICH_MODULE,
    answers,
    as_target,
    locate,
    merge,
    missing,
    read_facts,
    remarks,
    settings_for,
    understood,
)
from graph.chat_watch import watch_run
from graph.folders import require_writable
from graph.oversight import mark
from graph.runner import Answer, Runner
from graph.session import (
    CAPTURING,
    capture_target,
    export_again,
    find_run,
    find_summary,
    give_hint,
    record_run,
    rollback_target,
)
from graph.settings import Settings, resolve_settings, settings_from_run
from graph.summary import IN_REVIEW
from memory.errors import BadInput, StoreError, WarpsmithError
from memory.records import Run, RunStatus
from memory.store import Store
from tools.devices.build import gpu_of
from tools.problem import Captured


class ChatEngine:
    """One conversation's answers."""

    def __init__(
        self,
        conversation: Conversation,
        settings: Settings,
        *,
        reader: Reader | None = None,
        now: Clock = lambda: datetime.now(UTC),
    ) -> None:
        """settings: what holds where a message says nothing. reader: for messages that the rules cannot read."""
        self.conversation = conversation
        self.settings = settings
        self._reader = reader
        self.now = now
        self._runner = Runner(settings)
        self._standing = Standing()

    def say(self, text: str) -> Iterator[ChatPart]:
        """Answer a message, part by part. Errors that Warpsmith raises on purpose become a part."""
        yield from self._kept(self._heard(text))

    def follow(self) -> Iterator[ChatPart]:
        """Follow the current run until nobody works on it, and tell how it ended."""
        yield from self._kept(self._followed())

    def _kept(self, parts: Iterator[ChatPart]) -> Iterator[ChatPart]:
        try:
            for part in parts:
                if not isinstance(part, ProgressLine):
                    self.conversation.answer(part)
                yield part
        except WarpsmithError as error:
            failure = Failure(text=_sentence(str(error)))
            with suppress(StoreError):
                self.conversation.answer(failure)
            yield failure

    def _heard(self, text: str) -> Iterator[ChatPart]:
        self._standing = self.conversation.standing()
        self.conversation.say(text)
        intent = self._understand(text)
        if isinstance(intent, Unknown) and self._reader is not None and text.strip():
            yield ProgressLine(text="asking a language model what that means")
            said = [line.text for line in self.conversation.messages() if line.kind == "said"]
            reading = self._reader(text, said[-6:-1])
            yield Text(text=reading.remark)
            intent = reading.intent or intent
        pending = self._standing.pending
        if pending is not None and pending.about == "new_run" and not isinstance(intent, Confirm | Dismiss):
            self._stand(pending=None)  # so that a yes to something else, later, starts nothing
        yield from self._answer(intent, text)

    def _followed(self) -> Iterator[ChatPart]:
        self._standing = self.conversation.standing()
        with open_store(self.settings) as store:
            run = self._run(None, store)
            yield from watch_run(run, store, self._runner)
            yield from tell_status(store.run(run.id), self._desk(store))

    def _understand(self, text: str) -> Intent:
        intent, pending = read_intent(text), self._standing.pending
        if pending is not None and pending.request is not None:
            if isinstance(intent, Optimize) and not intent.again:
                return merge(intent, pending.request)
            if isinstance(intent, Stop) and text.strip(" .!").lower() in ("cancel", "abort"):
                return Dismiss()
            if isinstance(intent, Unknown | Confirm):
                path = pending.request.target.path
                found = answers(read_details(text), text, pending.request, read_facts(path) if path else None)
                return found if found is not None else Unknown(text)
        return intent

    def _answer(self, intent: Intent, text: str) -> Iterator[ChatPart]:
        match intent:
            case Optimize():
                yield from self._optimize(intent)
            case Unknown():
                yield self._not_understood(text)
            case Help():
                yield Text(text=speech.ABILITIES)
            case Dismiss():
                dropped = self._standing.pending is not None
                self._stand(pending=None)
                yield Text(text="All right, I have dropped the question." if dropped else "All right.")
            case _:
                with open_store(self.settings) as store:
                    yield from self._act(intent, store)

    def _act(self, intent: Intent, store: Store) -> Iterator[ChatPart]:
        match intent:
            case Status(run):
                yield from tell_status(self._run(run, store), self._desk(store))
            case ListRuns():
                yield from tell_runs(self._desk(store), self._standing.run)
            case UseRun(run):
                yield Text(text=f"From now on this is about run {self._run(run, store).id}.")
            case Explain(subject) | WhyFailed(subject):
                yield from self._tell_of(subject, store, failure=isinstance(intent, WhyFailed))
            case Hint(hint):
                yield from self._hint(hint, store)
            case Confirm():
                yield from self._confirmed(store)
            case Stop(run):
                yield from self._stop(run, store)
            case Resume():
                yield from self._resume(intent, store)
            case Export():
                yield from self._export(intent, store)
            case Approve(note):
                yield from self._review(Answer(approve=True, note=note), store)
            case Reject(note):
                yield from self._review(Answer(approve=False, note=note), store)
            case Mark(candidate, verdict, note):
                said = mark(self._run_with(candidate, store), candidate, verdict, store, note=note)
                yield Text(text=f"Noted: {said}.")
            case RollBack(candidate, note):
                yield from self._roll_back(candidate, note, store)

    # --- starting a run -----------------------------------------------------------------------------------------

    def _optimize(self, intent: Optimize) -> Iterator[ChatPart]:
        asked = self._standing.pending is not None and self._standing.pending.about in ("module", "details")
        request = intent
        if intent.again and self._standing.last is not None:
            request = merge(replace(intent, again=False), self._standing.last)
        located = locate(request, self.conversation)
        if located is None:
            self._stand(pending=Pending(about="module", request=request))
            yield (
                Failure(text="I still need a module: a path or its code.")
                if asked
                else Question(text=WHICH_MODULE)
            )
            return
        if located.added:
            yield Text(text=f"The code lacked imports; I added: {'; '.join(located.added)}.")
        if (question := missing(located)) is not None:
            self._stand(pending=Pending(about="details", request=located.request))
            yield (
                Failure(text=f"Something is still missing. {question}") if asked else Question(text=question)
            )
            return
        target = as_target(located)
        settings, device_note = settings_for(located.request.constraints, self.settings)
        yield Text(text=understood(located, target, settings))
        for remark in (*remarks(located), *([device_note] if device_note else [])):
            yield Text(text=remark)
        require_writable(settings.export_dir, "run from another folder or set WARPSMITH_EXPORT_DIR")
        yield ProgressLine(text=CAPTURING)
        with open_store(settings) as store:
            run = record_run(capture_target(target, settings), settings, store)
            kept = replace(
                located.request,
                target=replace(located.request.target, path=target.path, class_name=target.class_name),
                constraints=replace(located.request.constraints, remarks=()),
                unread="",
            )
            self._stand(run=run.id, pending=None, last=kept)
            yield from self._begin(run, settings, store)

    def _begin(self, run: Run, settings: Settings, store: Store) -> Iterator[ChatPart]:
        yield from speech.tell_capture(store.problem(run.problem_hash), gpu_of(settings.device_spec))
        yield speech.tell_beginning(run, settings, self._runner.start(run.id))

    # --- a run at work ------------------------------------------------------------------------------------------

    def _tell_of(self, subject: str | None, store: Store, *, failure: bool) -> Iterator[ChatPart]:
        if subject is not None and re.fullmatch(CANDIDATE_ID, subject):
            current = self._run(None, store) if self._known_run(store) else None
            yield from tell_candidate(subject, current, self._desk(store), failure=failure)
            return
        run = self._run(subject, store)
        yield from (tell_why if failure else tell_winner)(run, self._desk(store))

    def _hint(self, hint: str, store: Store) -> Iterator[ChatPart]:
        run = self._run(None, store)
        if run.status.ended:
            self._stand(pending=Pending(about="new_run", run=run.id, hint=hint))
            yield Question(
                text=f"Run {run.id} has ended ({run.status.words}), so an idea needs a new run. Shall"
                f" I start one on the same module with this idea? {speech.who_reads_hints(run)}"
            )
            return
        give_hint(run, hint, store)
        yield Text(text=f"Noted for run {run.id}: '{hint}'. {speech.who_reads_hints(run)}")

    def _confirmed(self, store: Store) -> Iterator[ChatPart]:
        pending = self._standing.pending
        if pending is None or pending.about != "new_run" or pending.run is None or pending.hint is None:
            yield Text(text=f"There is nothing to say yes to. {speech.ABILITIES}")
            return
        old = store.run(pending.run)
        settings = settings_from_run(old.settings, home=self.settings.home)
        captured = Captured(store.problem(old.problem_hash), store.twin(old.problem_hash))
        run = record_run(captured, settings, store)
        give_hint(run, pending.hint, store)
        self._stand(run=run.id, pending=None)
        yield from self._begin(run, settings, store)

    def _stop(self, named: str | None, store: Store) -> Iterator[ChatPart]:
        run = self._run(named, store)
        yield ProgressLine(text=f"stopping run {run.id}")
        if not self._runner.stop(run.id):
            status = find_summary(store.run(run.id), store, self.settings).status.replace("_", " ")
            yield Text(text=f"Nobody is working on run {run.id} ({status}).")
            return
        kept = find_summary(store.run(run.id), store, self.settings).evaluations
        yield Text(text=f"Stopped run {run.id}; its {kept} verdicts are kept. Say 'resume' to continue it.")

    def _resume(self, intent: Resume, store: Store) -> Iterator[ChatPart]:
        run, wanted = self._run(intent.run, store), intent.constraints
        if run.status.ended:
            raise BadInput(f"run {run.id} has ended ({run.status.words}); start another one")
        if self._status_of(run, store) == IN_REVIEW:
            raise BadInput(f"run {run.id} waits for your word on its winner; say 'approve' or 'reject: why'")
        kept = settings_from_run(run.settings)
        wall_s, generations = wanted.wall_s, wanted.generations
        if intent.more and wall_s is not None:
            wall_s += kept.wall_s
        if intent.more and generations is not None:
            generations += kept.generations
        fixed = (
            Constraints(wall_s=wanted.wall_s, generations=wanted.generations, remarks=wanted.remarks)
            != wanted
        )
        pid = self._runner.start(run.id, wall_s=wall_s, generations=generations)
        limits = (
            f"at most {wall_s or kept.wall_s:g} s and {generations or kept.generations} generations in all"
        )
        yield Text(text=f"Run {run.id} goes on in process {pid}: {limits}.")
        for note in (*wanted.remarks, *([speech.FIXED_SETTINGS] if fixed else [])):
            yield Text(text=f"{note[0].upper()}{note[1:]}.")

    def _export(self, intent: Export, store: Store) -> Iterator[ChatPart]:
        run = self._run(intent.run, store)
        folder = Path(intent.folder or run.settings["export_dir"]).expanduser()
        if folder.suffix == ".py":
            raise BadInput(f"{str(folder)!r} names a file; give a folder: the file is named after the run")
        require_writable(folder, "name another folder: 'export to …'")
        summary = export_again(
            run, store, resolve_settings(**(self.settings.model_dump() | {"export_dir": folder}))
        )
        yield Text(text=f"Exported to {summary.export_path}: one Python file with class ModelNew.")

    def _review(self, answer: Answer, store: Store) -> Iterator[ChatPart]:
        run = self._run(None, store)
        status = self._status_of(run, store)
        if status != IN_REVIEW:
            raise BadInput(f"run {run.id} does not wait for review (it is {status.replace('_', ' ')})")
        pid = self._runner.start(run.id, answer=answer)
        said = "Approved" if answer.approve else "Rejected"
        note = f", with the note '{answer.note}'" if answer.note else ""
        onward = "archives and exports it" if answer.approve else "looks for the next best candidate"
        yield Text(text=f"{said}{note}. Process {pid} {onward}; say 'status' to see when it is done.")

    def _roll_back(self, candidate: str, note: str, store: Store) -> Iterator[ChatPart]:
        run = self._run_with(candidate, store)
        to = rollback_target(run, candidate, store, self.settings)
        pid = self._runner.roll_back(run.id, to, note)
        yield Text(text=speech.tell_rollback(to, pid))

    # --- where the conversation stands --------------------------------------------------------------------------

    def _run(self, named: str | None, store: Store) -> Run:
        """The run that is meant, which becomes the current one. Raises BadInput where there is none."""
        run = find_run(named, store) if named else self._known_run(store)
        if run is None:
            raise BadInput(
                "there is no run yet; name a module, such as 'optimize examples/layernorm_gelu.py'"
            )
        self._stand(run=run.id)
        return run

    def _run_with(self, candidate: str, store: Store) -> Run:
        """The run that a candidate is of, which becomes the current one."""
        return self._run(run_of(candidate, self._known_run(store), store).id, store)

    def _known_run(self, store: Store) -> Run | None:
        return store.run(self._standing.run) if self._standing.run else store.latest_run()

    def _status_of(self, run: Run, store: Store) -> str:
        if self._runner.worker(run.id) is not None:
            return RunStatus.RUNNING.value
        return find_summary(run, store, self.settings).status

    def _stand(self, **changes: object) -> None:
        self._standing = Standing.model_validate(dict(self._standing) | changes)
        self.conversation.stand(self._standing)

    def _desk(self, store: Store) -> Desk:
        return Desk(self.settings, store, self._runner, self.now())

    def _not_understood(self, text: str) -> ChatPart:
        pending = self._standing.pending
        if pending is not None:
            wanted = {
                "module": "a path or code",
                "details": "the class or its arguments",
                "new_run": "yes or no",
            }
            return Failure(
                text=f"That does not answer my question: I need {wanted[pending.about]}. 'never mind' drops it."
            )
        shown = " ".join(text.split())[:80]
        return Text(text=f"I do not understand '{shown}'. {speech.ABILITIES}" if shown else speech.ABILITIES)


def _sentence(text: str) -> str:
    joined = " ".join(text.split())
    return joined if joined.endswith((".", "!", "?")) else f"{joined}."
