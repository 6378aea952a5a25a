"""Language models through langchain-openai: the one place that talks to an endpoint.

Here: one request, its retries, and what went wrong in words. Not here: what is asked (agents.prompting), whether the
answer fits (agents.answers), what it costs (agents.prices), or that no answer is paid for twice (agents.asking).
Covers: endpoints that stall, refuse, throttle, break off, or answer with something that is no completion: each ends
in a Completion or in ModelFailed within `timeout_s` an attempt. Transport alone is retried; an answer never is. An
attempt that may have been answered, and charged, without us is reported as lost; one that was refused is not.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping

import httpx
import openai
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from langsmith import tracing_context
from pydantic import SecretStr

from agents.calls import Completion, ModelFailed, ModelRequest
from agents.endpoint import Endpoint
from agents.transport import Bounded

OPENAI_URL = "https://api.openai.com/v1"
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
_LATER = frozenset((408, 409, 425, 429))
"""Statuses below 500 that a later request may not get."""
_GATEWAYS = frozenset((408, 502, 504, 524))
"""Statuses of whoever stands between us and the model, which may have gone on answering."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class _Later(Exception):
    """A request failed in a way that may pass."""

    def __init__(self, message: str, pause_s: float | None = None, *, lost: bool = False) -> None:
        """lost: the model may have answered all the same."""
        super().__init__(message)
        self.pause_s = pause_s
        self.lost = lost


class LanguageModels:
    """An endpoint's models. Threads may share it."""

    def __init__(self, endpoint: Endpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._endpoint = endpoint
        self._sleep = sleep
        self._slots = threading.BoundedSemaphore(endpoint.parallel)
        self._structured = True
        # Ollama and older llama.cpp read max_tokens alone, and would write without end; OpenAI refuses to be told both.
        self._limited_twice = endpoint.base_url not in (None, OPENAI_URL)
        self._http = httpx.Client(transport=Bounded(), headers={"Accept-Encoding": "identity"})
        rate = endpoint.requests_per_minute
        self._limiter = (
            InMemoryRateLimiter(requests_per_second=rate / 60, check_every_n_seconds=0.05) if rate else None
        )

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def complete(self, request: ModelRequest, *, deadline_s: float, lost: Callable[[], bool]) -> Completion:
        """See agents.calls.Models."""
        ends = time.monotonic() + deadline_s
        attempt = 0
        with self._slots:
            while True:
                left = ends - time.monotonic()
                if left <= 0:
                    raise ModelFailed(f"{request.model}: no time is left to ask", hopeless=False)
                if self._limiter is not None:  # langchain's own takes one token for all retries
                    self._limiter.acquire()
                try:
                    return self._ask(request, min(self._endpoint.timeout_s, left))
                except _Later as later:
                    if later.lost and not lost():
                        raise ModelFailed(
                            f"{request.model}: {later}; the caps leave no room to ask again", hopeless=False
                        ) from later
                    self._pause(request, later, attempt, ends)
                    attempt += 1

    def _pause(self, request: ModelRequest, later: _Later, attempt: int, ends: float) -> None:
        """Wait before the next attempt. Raises ModelFailed where there should be none."""
        what = f"{request.model}: {later}"
        if attempt >= self._endpoint.retries:
            raise ModelFailed(f"{what} (after {attempt + 1} attempts)", hopeless=False) from later
        cap = self._endpoint.retry_after_cap_s
        if later.pause_s is not None and later.pause_s > cap:
            raise ModelFailed(
                f"{what}; the server asks for a pause of {later.pause_s:.0f} s and at most {cap:.0f} s are waited "
                "(setting retry_after_cap_s)",
                hopeless=False,
            ) from later
        backoff = min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)
        pause = later.pause_s if later.pause_s is not None else backoff
        if time.monotonic() + pause >= ends:
            raise ModelFailed(f"{what}; no time is left to wait {pause:.0f} s", hopeless=False) from later
        self._sleep(pause)

    def _ask(self, request: ModelRequest, timeout_s: float) -> Completion:
        structured = request.schema is not None and self._structured
        started = time.monotonic()
        try:
            message = self._send(request, timeout_s, structured=structured)
        except openai.BadRequestError as error:
            if self._limited_twice and "max_tokens" in _said(error):
                self._limited_twice = False
                raise _Later(_said(error), 0.0) from error
            if not structured:
                # Perhaps this prompt alone (too long, refused by a filter), so another one may still be answered.
                raise ModelFailed(f"{request.model}: {_said(error)}", hopeless=False) from error
            # The endpoint may not know structured output: from now on it is asked in words alone.
            self._structured = False
            raise _Later(_said(error), 0.0) from error
        except openai.APIStatusError as error:
            code = error.status_code
            if code in _LATER or code >= 500:
                raise _Later(
                    f"the endpoint answered {code}: {_said(error)}",
                    _retry_after(error),
                    lost=code in _GATEWAYS,
                ) from error
            hopeless = f"{request.model}: the endpoint answered {code}: {_said(error)}; {_remedy(code)}"
            raise ModelFailed(hopeless, hopeless=True) from error
        except openai.APITimeoutError as error:
            raise _Later(f"no answer within {timeout_s:.0f} s", lost=_was_sent(error)) from error
        except (openai.APIConnectionError, httpx.HTTPError) as error:
            where = self._endpoint.base_url or "the endpoint"
            what = f"{where} cannot be reached: {error.__cause__ or error}"
            raise _Later(what, lost=_was_sent(error)) from error
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, openai.OpenAIError) as error:
            # What the SDK and langchain raise for a body that is no completion: HTML, `{}`, no choices.
            what = f"the reply is no completion ({type(error).__name__}: {_short(error)})"
            raise _Later(what, lost=True) from error
        return _completion(message, time.monotonic() - started)

    def _send(self, request: ModelRequest, timeout_s: float, *, structured: bool) -> BaseMessage:
        chat: Runnable[list[BaseMessage], BaseMessage] = ChatOpenAI(
            model=request.model,
            api_key=SecretStr(self._endpoint.api_key),
            base_url=self._endpoint.base_url or OPENAI_URL,  # else the SDK asks the environment
            temperature=request.temperature,
            reasoning_effort=request.effort,
            max_completion_tokens=request.max_output_tokens,
            extra_body={"max_tokens": request.max_output_tokens} if self._limited_twice else None,
            timeout=timeout_s,
            max_retries=0,  # the SDK's own wait as long as a server tells them to
            use_responses_api=False,
            http_client=self._http,
        )
        if structured and request.schema is not None:
            schema = {"name": "answer", "schema": json.loads(request.schema)}
            chat = chat.bind(response_format={"type": "json_schema", "json_schema": schema})
        messages: list[BaseMessage] = [_KINDS[turn.role](content=turn.text) for turn in request.messages]
        # Said at every call: langchain would otherwise follow whatever LANGSMITH_TRACING happens to be.
        with tracing_context(enabled=self._endpoint.tracing):
            return chat.invoke(messages)


_KINDS: Mapping[str, type[SystemMessage] | type[HumanMessage] | type[AIMessage]] = {
    "system": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
}


def _completion(message: BaseMessage, latency_s: float) -> Completion:
    text = message.text if isinstance(message.text, str) else str(message.text)
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return Completion(
        text=text,
        tokens_in=usage["input_tokens"] if usage else None,
        tokens_out=usage["output_tokens"] if usage else None,
        cut_off=message.response_metadata.get("finish_reason") not in ("stop", "tool_calls", "eos"),
        latency_s=latency_s,
    )


def _was_sent(error: BaseException) -> bool:
    """False where the connection never stood."""
    return not isinstance(error, _NEVER_SENT) and (error.__cause__ is None or _was_sent(error.__cause__))


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds that the server asks to wait; None where it does not say, or names a date."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(seconds, 0.0)


def _remedy(code: int) -> str:
    if code in (401, 403):
        return "check OPENAI_API_KEY and OPENAI_BASE_URL"
    if code == 404:
        return "check the model's name in WARPSMITH_MODELS and OPENAI_BASE_URL"
    return "see the endpoint's documentation"


def _said(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return _short(body["message"])
    return _short(error)


def _short(what: object) -> str:
    text = " ".join(str(what).split())
    return text if len(text) <= 300 else f"{text[:297]}..."
