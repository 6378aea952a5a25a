"""The agents by rules: no model, no key. They seed every run and remain the fallback of model-backed agents."""
