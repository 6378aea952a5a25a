"""The rollback policy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import Member
from graph.rollback import Course, course, too_many_failures
from memory.records import Status
from tests.members import member


def judged(passed: int, failed: int) -> list[Member]:
    fine = [member(f"run-000-{i:03d}") for i in range(passed)]
    return [*fine, *(member(f"run-001-{i:03d}", status=Status.INCORRECT) for i in range(failed))]


@given(st.integers(0, 40), st.integers(0, 40))
def test_more_than_a_fifth_and_more_than_one_is_too_many(passed: int, failed: int) -> None:
    assert too_many_failures(judged(passed, failed)) == (failed >= 2 and 5 * failed > passed + failed)


def test_a_mended_program_is_no_failure() -> None:
    broken = [member(f"run-000-00{i}", status=Status.COMPILE_ERROR) for i in range(2)]
    mended = [member("run-000-000-r1"), member("run-000-001-r1", status=Status.INCORRECT)]
    assert too_many_failures(broken)
    assert not too_many_failures([*broken, *mended])
    assert too_many_failures([*broken, mended[1], member("run-000-000-r1", status=Status.TIMED_OUT)])


def test_a_bad_generation_rolls_back_and_a_bad_gentle_one_falls_back() -> None:
    bad, fine = judged(3, 2), judged(4, 1)
    assert course(fine, gentle=False, good=True) is Course.ONWARD
    assert course(fine, gentle=True, good=True) is Course.ONWARD
    assert course(bad, gentle=False, good=True) is Course.ROLL_BACK
    assert course(bad, gentle=True, good=True) is Course.FALL_BACK


def test_without_a_good_generation_there_is_nothing_to_fall_back_from() -> None:
    assert course(judged(3, 2), gentle=True, good=False) is Course.ROLL_BACK


def test_an_empty_generation_is_no_failure() -> None:
    assert course([], gentle=True, good=True) is Course.ONWARD
