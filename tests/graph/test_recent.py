"""What was used last is kept, and no more than the limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graph.recent import Recent


@given(st.integers(1, 5), st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=60))
def test_it_keeps_the_entries_used_last_and_only_those(limit: int, uses: list[tuple[bool, int]]) -> None:
    recent: Recent[int, int] = Recent(limit)
    used: list[int] = []
    for put, key in uses:
        if put:
            assert recent.put(key, key * 10) == key * 10
        if put or key in used:
            used = [*(k for k in used if k != key), key][-limit:]
        assert recent.get(key) == (key * 10 if key in used else None)
    assert all(recent.get(key) == (key * 10 if key in used else None) for key in range(9))


def test_what_is_forgotten_is_not_kept() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.forget("a")
    recent.forget("never there")
    assert recent.get("a") is None
