"""The loop: a LangGraph state machine over the agents, the verifier, the store and the archive."""

import os

# Read once by langgraph when it is first imported: only types that the state declares may come out of a checkpoint.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
