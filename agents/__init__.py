"""The five agents: what each reads and decides, and who plays them. A map, in the order in which it is best read.

- `ports`, `schemas`: the five protocols, and the records that they exchange.
- `rules/`: each agent without a model. They seed every run and remain the fallback.
- `planner`, `coder`, `compiler`, `profiler`, `critic`: each agent with a model; `interpreter` reads free chat. Their
  words are in `prompts/`, one file a role.
- `slots` says which slots of a generation go to models, `bandit` draws their moves; `novelty` tells the coder what is
  no new program.
- `scene_sections`, `program_sections`, `prompting`: what a prompt says, cut to its budget and marked as material.
- `asking`: one question until its answer fits; `calls` has its records. `answers` reads the reply.
- `allowance`, `prices`: what may still be used, and what it costs.
- `endpoint`: who plays which role and how servers are used; `llm` talks to them over `transport`.
"""
