"""A family laid out, and two programs compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.differences import difference
from graph.family import family_of
from graph.roofs import dots_of, gpu_behind, roofs_of
from memory.errors import BadInput
from memory.store import Store
from tests.members import passed
from tests.problems import scaled_relu_problem, scaled_relu_program
from tests.ui.filled import fill


def test_layers_are_generations_a_repair_follows_what_it_mends_and_children_come_last(tmp_path: Path) -> None:
    run = fill(tmp_path)
    with Store(tmp_path / "store.db") as store:
        whole = family_of(run, store, "001-001")
        assert whole is not None and not whole.left_out
        places = {one.candidate.id.removeprefix(f"{run.id}-"): (one.relation, one.layer) for one in whole.kin}
        assert places == {"000-000": ("ancestor", 0), "001-001": ("itself", 1), "001-001-r1": ("child", 2)}
        assert len(whole.links) == 2
        tuned = family_of(run, store, "001-000")
        assert tuned is not None
        assert [one.gain for one in tuned.kin] == [pytest.approx(100 / 40), pytest.approx(2.0)]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    run = fill(tmp_path)
    with Store(tmp_path / "store.db") as store:
        cut = family_of(run, store, "001-001-r1", limit=2)
        assert cut is not None and len(cut.kin) == 2
        assert cut.left_out == "Not drawn: 1 further ancestors, the most distant ones."
        with pytest.raises(BadInput, match="no candidate '7'"):
            family_of(run, store, "7")


def test_a_difference_tells_source_tunables_and_plan_apart() -> None:
    program = scaled_relu_program()
    names = "a", "b"
    assert difference(program, program, names=names).nothing
    tuned = difference(program, program.with_values({"BLOCK": 64}), names=names)
    assert tuned.tunables == (("BLOCK", program.tunable_values()["BLOCK"], 64),)
    assert not tuned.source and not tuned.plan
    replayed = difference(program, program.model_copy(update={"replay": True}), names=names)
    assert '+ "replay": true' in replayed.plan and not replayed.source
    changed = difference(program, program.model_copy(update={"source": "other"}), names=names)
    assert changed.source.startswith("--- a\n+++ b") and "+other" in changed.source


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("simulator:a100", "a100"),
        ("cuda:NVIDIA H200", "h200"),
        ("cuda:NVIDIA GeForce RTX 4090", "rtx4090"),
        ("cuda:NVIDIA A10", None),
        ("cuda:", None),
    ],
)
def test_a_devices_name_leads_to_its_gpu(device: str, name: str | None) -> None:
    found = gpu_behind(device)
    assert (found.name if found else None) == name


def test_a_dot_stands_where_its_bytes_flops_and_time_put_it(tmp_path: Path) -> None:
    run = fill(tmp_path)
    roofs = roofs_of(run, scaled_relu_problem())
    assert roofs is not None and roofs.plain_tflops < roofs.peak_tflops
    _, profile = passed(50.0)
    idle = profile.steps[0].model_copy(update={"name": "copy", "flops": 0.0})
    dots, without = dots_of(profile.model_copy(update={"steps": (*profile.steps, idle)}), roofs)
    assert without == ("copy",) and len(dots) == 1
    assert dots[0].intensity == pytest.approx(0.1) and dots[0].tflops == pytest.approx(1e5 / 50 / 1e6)
    assert dots[0].share == pytest.approx(1e6 / 50 / 1e3 / roofs.bandwidth_gbps)
