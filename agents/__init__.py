"""The five agents: what each reads and decides (ports, schemas), and who plays them (rules, models)."""
