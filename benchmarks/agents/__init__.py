"""What agents are told: recorded situations, the facts that a reader needs in each, and whether the prompt has them."""
