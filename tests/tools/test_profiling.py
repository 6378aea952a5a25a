"""The profiler's summary: what it names from events alone, and what hardware counters change."""

from __future__ import annotations

import pytest

from memory.records import BaselineTime, Profile, StepProfile, Timing
from tools.devices.port import Measured
from tools.gpus import gpu_named
from tools.nsight_records import Counted, CountersAbsent, KernelCounters
from tools.profiling import kernel_lines, refine, summarise

H200 = gpu_named("h200")
US = 100.0
PEAK_BYTES = H200.dram_gbps * US * 1e3
"""What a copy moves in that time."""


def step(name: str = "k", us: float = US, **changes: object) -> StepProfile:
    plain = StepProfile(
        name=name,
        authored=True,
        us=us,
        limiter="dram",
        dram_bytes=1e6,
        flops=0.0,
        occupancy=0.75,
        registers=40,
    )
    return plain.model_copy(update=changes)


def measured(*steps: StepProfile, median_us: float | None = None) -> Measured:
    total = sum(s.us for s in steps) + 3.0 if median_us is None else median_us
    return Measured(total, total, total, 50, steps)


def kernel(name: str = "k", **values: object) -> KernelCounters:
    plain = {
        "seconds": US * 1e-6,
        "dram_read_bytes": 0.0,
        "dram_write_bytes": 0.0,
        "dram_peak": 0.05,
        "l2_peak": 0.1,
        "l1_peak": 0.1,
        "sm_peak": 0.1,
        "occupancy_achieved": 0.7,
        "occupancy_theoretical": 0.75,
        "stalls": {"long_scoreboard": 8.0, "selected": 1.0, "barrier": 1.0},
        "instructions": {"ffma": 1000.0, "integer": 3000.0},
    }
    return KernelCounters.model_validate({"name": name, "launches": 1, **plain, **values})


def counted(*kernels: KernelCounters) -> Counted:
    return Counted(device="cuda:x", kernels=kernels, seconds=1.0)


def summary(found: KernelCounters, floor_us: float = 10.0) -> Profile:
    # A second, small kernel, so that the floor says nothing of the first alone.
    return summarise(measured(step(), step("tail", 1.0)), floor_us, H200, counted(found, kernel("tail")))


def test_without_counters_or_rates_nothing_is_said_of_a_roofline() -> None:
    profile = summarise(measured(step()), 80.0)
    assert profile.bottleneck == "memory"
    assert profile.steps[0].roofline_fraction is None and profile.steps[0].meets_target is None
    assert profile.meets_target is None
    assert not profile.steps[0].counted
    assert kernel_lines(profile) == ("k: its share of the roofline is not known",)


def test_without_counters_the_roofline_is_estimated_and_labelled_so() -> None:
    profile = summarise(measured(step(dram_bytes=0.5 * PEAK_BYTES), step("tail", 1.0)), 10.0, H200)
    assert profile.steps[0].roofline_fraction == pytest.approx(0.5)
    assert profile.steps[0].meets_target is False
    assert "estimated" in kernel_lines(profile)[0]


def test_of_a_single_kernel_the_floor_over_its_time_counts_too() -> None:
    profile = summarise(measured(step()), 0.9 * US, H200)
    assert profile.steps[0].roofline_fraction == pytest.approx(0.9)
    assert profile.meets_target is True


def test_counted_bytes_replace_estimated_ones_and_make_the_kernel_memory_bound() -> None:
    found = kernel(dram_read_bytes=0.6 * PEAK_BYTES, dram_write_bytes=0.3 * PEAK_BYTES, dram_peak=0.85)
    profile = summary(found)
    first = profile.steps[0]
    assert first.counted and first.limiter == "dram" and profile.bottleneck == "memory"
    assert first.dram_bytes == pytest.approx(0.9 * PEAK_BYTES)
    assert first.dram_gbps == pytest.approx(0.9 * H200.dram_gbps)
    assert first.roofline_fraction == pytest.approx(0.9) and first.meets_target
    assert first.us == US, "its time stays the one measured without the profiler"
    assert "3,870 GB/s of DRAM traffic counted" in profile.explanation
    assert "occupancy 70% of 75% possible" in profile.explanation
    assert "at 90% of its roofline" in profile.explanation
    assert "reaches the target of 80%" in profile.explanation
    assert "\n" not in profile.explanation


def test_a_busy_cache_is_a_memory_bottleneck_of_its_own() -> None:
    assert summary(kernel(l2_peak=0.8)).steps[0].limiter == "l2"
    strided = summary(kernel(l1_peak=0.9, load_requests=100.0, load_sectors=3200.0))
    assert strided.steps[0].limiter == "load_store" and strided.bottleneck == "memory"
    assert "32.0 sectors per load request" in strided.explanation


def test_busy_arithmetic_is_compute_and_its_share_is_of_the_units_rate() -> None:
    multiply_adds = 0.85 * H200.fp32_tflops * US * 1e6 / 2
    profile = summary(kernel(sm_peak=0.9, instructions={"ffma": multiply_adds}))
    assert profile.bottleneck == "compute"
    assert profile.steps[0].compute_fraction == pytest.approx(0.85)
    assert profile.steps[0].meets_target is True


def test_busy_tensor_cores_are_compute() -> None:
    profile = summary(kernel(tensor_active=0.75))
    assert profile.bottleneck == "compute"
    assert profile.steps[0].roofline_fraction == pytest.approx(0.75)
    assert profile.steps[0].meets_target is False
    assert "tensor cores busy 75%" in profile.explanation


def test_where_nothing_is_busy_the_dominant_stall_is_named() -> None:
    profile = summary(kernel())
    assert profile.bottleneck == "latency"
    assert profile.steps[0].stall == "long_scoreboard"
    assert profile.steps[0].stall_share == pytest.approx(0.8)
    assert (
        "warps wait 80% of their time for a load from global, local or texture memory" in profile.explanation
    )


def test_few_resident_warps_are_an_occupancy_bottleneck_whatever_would_fit() -> None:
    profile = summary(kernel(occupancy_achieved=0.2))
    assert profile.bottleneck == "occupancy"
    assert "occupancy 20% of 75% possible" in profile.explanation


def test_a_kernel_of_a_few_microseconds_is_launch() -> None:
    profile = summarise(
        measured(step(us=4.0), median_us=7.0), 1.0, H200, counted(kernel(seconds=3e-6, dram_peak=0.9))
    )
    assert profile.bottleneck == "launch"


def test_an_idle_device_is_launch_whatever_its_kernels_do() -> None:
    profile = summarise(measured(step(us=10.0), median_us=200.0), 1.0, H200, counted(kernel()))
    assert profile.bottleneck == "launch"
    assert "idle" in profile.explanation


def test_a_heavy_library_call_stays_the_bottleneck() -> None:
    library = step("mm", 900.0, authored=False)
    profile = summarise(measured(step(), library), 10.0, H200, counted(kernel(), kernel("mm", dram_peak=0.9)))
    assert profile.bottleneck == "library"
    assert not profile.steps[1].counted, "a library's kernels are not the step's"
    assert profile.steps[0].counted


def test_each_kernel_has_a_line_with_its_share_and_the_target() -> None:
    good = kernel(dram_read_bytes=0.9 * PEAK_BYTES)
    profile = summarise(measured(step(), step("other")), 10.0, H200, counted(good, kernel("other")))
    first, second = kernel_lines(profile)
    assert first.startswith("k: at 90% of its roofline (DRAM 90%, arithmetic 0%), which reaches")
    assert second.startswith("other: at 0% of its roofline") and "is below the target of 80%" in second
    assert profile.meets_target is False


def test_numbers_that_were_not_counted_are_left_out() -> None:
    bare = KernelCounters(name="k", launches=1, seconds=US * 1e-6)
    profile = summary(bare)
    first = profile.steps[0]
    assert (
        first.counted and first.dram_gbps is None and first.stall is None and first.roofline_fraction is None
    )
    assert first.dram_bytes == 1e6, "the estimate stays where nothing was counted"
    assert "not known" in kernel_lines(profile)[0]


def test_a_passed_candidates_profile_is_refined_later() -> None:
    before = summarise(measured(step(), median_us=103.0), 80.0)
    eager = BaselineTime(name="eager", median_us=300.0, low_us=290.0, high_us=310.0)
    timing = Timing(
        source="measured",
        device="cuda:x",
        median_us=103.0,
        low_us=102.0,
        high_us=104.0,
        floor_us=80.0,
        baselines=(eager,),
    )
    after = refine(before, timing, H200, counted(kernel(dram_read_bytes=0.85 * PEAK_BYTES)))
    assert after.floor_fraction == before.floor_fraction
    assert after.steps[0].roofline_fraction == pytest.approx(0.85)
    assert after.counters_absent is None
    why = CountersAbsent(reason="no_permission", message="ask the administrator")
    refused = refine(before, timing, H200, why)
    assert refused.counters_absent == "ask the administrator"
    assert refused.bottleneck == before.bottleneck and not refused.steps[0].counted


def test_a_profile_with_counters_comes_back_from_json() -> None:
    profile = summary(kernel(dram_read_bytes=1e6, l1_hit_rate=0.3, bank_conflicts=12.0))
    again = Profile.model_validate_json(profile.model_dump_json())
    assert again == profile
    assert again.content_hash() == profile.content_hash()
    assert again.steps[0].instruction_mix == {"fp32": 0.25, "integer": 0.75}


def test_a_profile_of_an_earlier_version_is_still_read() -> None:
    old = summarise(measured(step()), 80.0).model_dump(mode="json")
    for name in set(StepProfile.model_fields) - set(
        "name authored us limiter dram_bytes flops occupancy registers".split()
    ):
        old["steps"][0].pop(name)
    old.pop("counters_absent")
    assert Profile.model_validate(old).steps[0].meets_target is None
