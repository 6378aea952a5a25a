"""Nsight Compute: its tables as numbers, its counters as records, and every way in which it can have none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memory.errors import ToolMissing
from memory.records import LibraryStep
from tests.problems import scaled_relu_problem, scaled_relu_program
from tests.tools.fake_tools import ends_soon, fake_tool, missing_tool
from tools.devices.build import DeviceSpec
from tools.nsight import NsightLimits, profile_finalist
from tools.nsight_counters import COUNTERS, chosen_metrics, count_kernels
from tools.nsight_csv import kernel_name, parse_csv, unit_scale
from tools.nsight_process import Tool, find_tool, tool_environment
from tools.nsight_records import Counted, CountersAbsent, KernelCounters
from tools.worker import WorkerSpec

GPU = DeviceSpec("cuda", "NVIDIA H200")
NOWHERE = {"PATH": "/nonexistent"}

RAW = """==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Profiling "scaled_relu" - 0: 0%....50%....100% - 24 passes
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","dram__bytes_write.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed",\
"gpu__time_duration.sum","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","lts__t_sector_hit_rate.pct","sm__cycles_elapsed.avg.per_second",\
"sm__inst_executed_pipe_tensor_op_gmma.sum","sm__maximum_warps_per_active_cycle_pct",\
"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",\
"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum","smsp__sass_thread_inst_executed_op_integer_pred_on.sum"
"","","","","","","","","","","","byte","byte","%","ns","","sector","%","hz","inst","%","inst","inst","inst","inst"
"0","4242","python3","127.0.0.1","scaled_relu(const float *, float *)","1","7","(128, 1, 1)","(8192, 1, 1)","0","9.0",\
"33,554,432","16,777,216","80.5","10,000","65,536","262,144","40","1,700,000,000","n/a","100","12","1","1,000","3,000"
"1","4242","python3","127.0.0.1","void gemm<4, float>(T1 *)","1","7","(128, 1, 1)","(8, 1, 1)","0","9.0",\
"1,000","2,000","8","5,000","0","0","90","1,700,000,000","512","50","3","1","0","0"
"2","4242","python3","127.0.0.1","scaled_relu(const float *, float *)","1","7","(128, 1, 1)","(8192, 1, 1)","0","9.0",\
"33,554,432","16,777,216","60.5","30,000","65,536","262,144","20","1,500,000,000","n/a","100","8","1","1,000","3,000"
==PROF== Disconnected from process 4242
"""
"""The raw page with `--print-units base`: units in a row of their own, thousands with commas."""

DETAILS = """device printed something first
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","p","h","scaled_relu","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0","s","gpu__time_duration.sum","usecond","12.5"
"0","1","p","h","scaled_relu","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0","s","dram__bytes_read.sum","Mbyte","2.5"
"0","1","p","h","scaled_relu","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0","s","dram__bytes_write.sum","Kbyte","640"
"0","1","p","h","scaled_relu","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0","s","lts__t_sector_hit_rate.pct","%","nan"
"""
"""The details page of an older version, with units that it chose itself."""


def counted(rows: str = RAW, launches: int = 2) -> KernelCounters:
    kernel = Counted(
        device="cuda:x", kernels=count_kernels(parse_csv(rows), {"scaled_relu": launches}), seconds=1.0
    ).kernel("scaled_relu")
    assert kernel is not None
    return kernel


def profile(tool: Tool, *, deadline_s: float = 20.0, spec: DeviceSpec = GPU) -> Counted | CountersAbsent:
    limits = NsightLimits(deadline_s=deadline_s, tool=tool, environ=NOWHERE)
    where = WorkerSpec(spec, Path("cache"))
    return profile_finalist(scaled_relu_program(), scaled_relu_problem(), None, where, limits)


def absence(tool: Tool, *, deadline_s: float = 20.0, spec: DeviceSpec = GPU) -> CountersAbsent:
    found = profile(tool, deadline_s=deadline_s, spec=spec)
    assert isinstance(found, CountersAbsent)
    assert "stay unknown" in found.message
    return found


@pytest.mark.parametrize(
    ("unit", "scale"),
    [
        ("byte", 1.0), ("Kbyte", 1e3), ("Mbyte", 1e6), ("Gbyte", 1e9), ("Tbyte", 1e12), ("Ksector", 1e3),
        ("second", 1.0), ("msecond", 1e-3), ("usecond", 1e-6), ("nsecond", 1e-9), ("ns", 1e-9), ("us", 1e-6),
        ("hz", 1.0), ("Ghz", 1e9), ("cycle/nsecond", 1e9), ("Gbyte/second", 1e9), ("Gbyte/s", 1e9), ("byte/block", 1.0),
        ("register/thread", 1.0), ("%", 1.0), ("", 1.0), ("inst", 1.0), ("Xbyte", None), ("42", None),
    ],
)  # fmt: skip
def test_every_unit_is_taken_to_its_base(unit: str, scale: float | None) -> None:
    assert unit_scale(unit) == (None if scale is None else pytest.approx(scale))


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("scaled_relu", "scaled_relu"),
        ("scaled_relu(const float *, float *)", "scaled_relu"),
        ("void gemm<4, float>(T1 *)", "gemm"),
        ("void at::native::(anonymous namespace)::fill<at::Scalar>(int, T1)", "at::native::fill"),
    ],
)
def test_a_kernel_is_named_without_parameters(printed: str, name: str) -> None:
    assert kernel_name(printed) == name


def test_launches_of_a_kernel_add_up_and_shares_are_weighted_by_time() -> None:
    kernel = counted()
    assert kernel.launches == 2
    assert kernel.us == pytest.approx(40.0)
    assert kernel.dram_bytes == 2 * (33_554_432 + 16_777_216)
    assert kernel.dram_peak == pytest.approx(0.25 * 0.805 + 0.75 * 0.605)
    assert kernel.l2_hit_rate == pytest.approx(0.25)
    assert kernel.load_sectors_per_request == 4.0
    assert kernel.occupancy_theoretical == 1.0
    assert kernel.sm_hertz == pytest.approx(1.55e9)
    assert kernel.fp32_flops == 4000
    assert kernel.mix == {"fp32": 0.25, "integer": 0.75}


def test_the_worst_stall_leaves_out_warps_that_could_issue() -> None:
    reason, share = counted().worst_stall or ("", 0.0)
    assert reason == "long_scoreboard"
    assert share == pytest.approx(9.0 / 10.0)


def test_a_counter_that_is_not_offered_is_absent_and_loses_no_other() -> None:
    kernel = counted()
    assert "gmma" not in kernel.instructions
    assert kernel.bank_conflicts is None
    assert kernel.store_sectors_per_request is None
    assert kernel.instructions["ffma"] == 2000


def test_what_adds_up_is_scaled_to_launches_that_were_not_profiled() -> None:
    kernel = counted(launches=8)
    assert kernel.launches == 8
    assert kernel.us == pytest.approx(160.0)
    assert kernel.load_sectors_per_request == 4.0


def test_the_details_page_of_an_older_version_is_read_too() -> None:
    (row,) = parse_csv(DETAILS)
    assert row.kernel == "scaled_relu"
    assert row.values == {
        "gpu__time_duration.sum": pytest.approx(12.5e-6),
        "dram__bytes_read.sum": pytest.approx(2.5e6),
        "dram__bytes_write.sum": pytest.approx(640e3),
    }


@pytest.mark.parametrize(
    "text", ["", "==ERROR== The application returned an error code (11).\n", '"ID","x"\n"0","1"\n']
)
def test_text_without_a_table_has_no_launches(text: str) -> None:
    assert parse_csv(text) == []


def test_every_counter_has_a_place_a_meaning_and_a_name_of_its_own() -> None:
    fields = set(KernelCounters.model_fields)
    for counter in COUNTERS:
        group, dot, _ = counter.field.partition(".")
        assert group in fields and (bool(dot) == (group in ("stalls", "instructions"))), counter
        assert len(counter.meaning) > 10
    metrics = [metric for counter in COUNTERS for metric in counter.metrics]
    assert len(metrics) == len(set(metrics))
    assert len({counter.field for counter in COUNTERS}) == len(COUNTERS)


def test_an_unknown_metric_is_replaced_by_the_next_name_or_left_out() -> None:
    first, second = next(c.metrics for c in COUNTERS if c.field == "dram_peak")
    assert first in chosen_metrics() and second not in chosen_metrics()
    assert second in chosen_metrics([first]) and first not in chosen_metrics([first])
    assert len(chosen_metrics([first, second])) == len(chosen_metrics()) - 1


def test_a_table_becomes_counters(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path, "ncu", f"report()\nlog({RAW!r})\n")
    found = profile(tool)
    assert isinstance(found, Counted)
    assert [kernel.name for kernel in found.kernels] == ["scaled_relu", "gemm"]
    assert "instructions.gmma" not in found.missing
    assert "bank_conflicts" in found.missing


def test_the_command_leaves_clocks_alone_and_wraps_the_replay(tmp_path: Path) -> None:
    body = f"open({str(tmp_path / 'args')!r}, 'w').write('\\n'.join(args))\nlog({RAW!r})\n"
    profile(fake_tool(tmp_path, "ncu", body))
    words = (tmp_path / "args").read_text().splitlines()
    options = dict(zip(words[1::2], words[2::2], strict=False))
    assert options["--clock-control"] == "none"
    assert options["--profile-from-start"] == "off"
    assert options["--print-units"] == "base"
    assert options["--metrics"].split(",") == list(chosen_metrics())
    assert words[-3:-1] == ["-m", "tools.replay"]
    assert "--" not in words


def test_metrics_that_the_chip_lacks_are_dropped_and_the_rest_is_counted(tmp_path: Path) -> None:
    lacking = "lts__t_sector_hit_rate"
    body = f"""
if "--query-metrics" in args:
    log("Device NVIDIA H200 (GH100)\\n\\nMetric Name  Metric Type\\n")
    for metric in {[m for m in chosen_metrics() if "tensor_op_gmma" not in m]!r}:
        log(metric.partition(".")[0] + "   Counter  # of something\\n")
elif "{lacking}" in value("--metrics"):
    log("==ERROR== Failed to find metric regex:^{lacking}\\\\.(sum|min|max|avg|pct|ratio|max_rate)$\\n")
    sys.exit(1)
else:
    open({str(tmp_path / "asked")!r}, "w").write(value("--metrics"))
    log({RAW!r})
"""
    found = profile(fake_tool(tmp_path, "ncu", body))
    assert isinstance(found, Counted)
    asked = (tmp_path / "asked").read_text().split(",")
    assert f"{lacking}.pct" not in asked
    assert "sm__inst_executed_pipe_tensor_op_gmma.sum" not in asked
    assert "launch__waves_per_multiprocessor" in asked
    assert len(asked) == len(chosen_metrics()) - 2


def test_a_list_of_refused_metrics_is_understood(tmp_path: Path) -> None:
    body = f"""
if "--query-metrics" in args:
    sys.exit(1)
if "sm__throughput" in value("--metrics"):
    log("==ERROR== Failed to access the following 2 metrics: "
        "sm__throughput.avg.pct_of_peak_sustained_elapsed, lts__t_sector_hit_rate.pct\\n")
    sys.exit(1)
assert "lts__t_sector_hit_rate" not in value("--metrics")
log({RAW!r})
"""
    assert isinstance(profile(fake_tool(tmp_path, "ncu", body)), Counted)


def test_a_tool_that_never_knows_enough_is_given_up(tmp_path: Path) -> None:
    body = """
if "--query-metrics" in args:
    sys.exit(1)
log("==ERROR== Failed to find metric " + value("--metrics").split(",")[0] + "\\n")
sys.exit(1)
"""
    assert absence(fake_tool(tmp_path, "ncu", body)).reason == "failed"


@pytest.mark.parametrize(
    ("said", "reason", "remedy"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
            " on the target device 0.",
            "no_permission",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            "==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver is loaded.",
            "no_driver_support",
            "LibraryNotLoaded",
        ),
        ("==ERROR== Cuda driver is not compatible with Nsight Compute.", "no_driver_support", "too old"),
        ("==ERROR== Another tool is concurrently collecting profiling data.", "busy", "DCGM"),
        ("==WARNING== No kernels were profiled.", "no_kernels", "no kernel"),
        ("==ERROR== An error was reported by the moon.", "failed", "reported by the moon"),
    ],
)
def test_a_failure_has_a_reason_and_a_remedy(tmp_path: Path, said: str, reason: str, remedy: str) -> None:
    found = absence(fake_tool(tmp_path, "ncu", f"report()\nlog({said!r})\nsys.exit(1)\n"))
    assert found.reason == reason
    assert remedy in found.message


def test_a_program_that_does_not_run_under_the_profiler_is_said_to(tmp_path: Path) -> None:
    body = "report('CUDA out of memory')\nlog('==WARNING== No kernels were profiled.')\nsys.exit(1)\n"
    found = absence(fake_tool(tmp_path, "ncu", body))
    assert found.reason == "failed"
    assert "CUDA out of memory" in found.message


def test_a_profiler_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = f"""
child = subprocess.Popen(["/bin/sleep", "60"])
with open({str(pid_file)!r}, "w") as stream:
    stream.write(str(child.pid))
time.sleep(60)
"""
    started = time.monotonic()
    assert absence(fake_tool(tmp_path, "ncu", body), deadline_s=1.5).reason == "timed_out"
    assert time.monotonic() - started < 10
    assert ends_soon(int(pid_file.read_text()))


def test_a_machine_without_the_tool_is_told_what_to_install(tmp_path: Path) -> None:
    found = absence(missing_tool(tmp_path, "ncu"))
    assert found.reason == "no_tool"
    assert "CUDA toolkit" in found.message


def test_a_simulated_device_has_no_counters(tmp_path: Path) -> None:
    assert absence(missing_tool(tmp_path, "ncu"), spec=DeviceSpec("simulator", "h200")).reason == "no_gpu"


def test_kernels_of_a_plan_of_library_calls_are_counted_under_their_own_names(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path, "ncu", f"log({RAW!r})\n")
    steps = (LibraryStep(op="aten.relu.default", args=("x",), outputs=("y",)),)
    program = scaled_relu_program("", steps=steps, tunables=())
    limits = NsightLimits(tool=tool, environ=NOWHERE)
    found = profile_finalist(program, scaled_relu_problem(), None, WorkerSpec(GPU, Path("cache")), limits)
    assert isinstance(found, Counted)
    assert found.kernel("gemm") is not None


def test_a_tool_is_found_by_its_variable_then_on_the_path_then_in_the_usual_places(tmp_path: Path) -> None:
    usual = fake_tool(tmp_path / "cuda-9.2", "ncu", "")
    fake_tool(tmp_path / "cuda-13.0", "ncu", "")
    tool = Tool("ncu", "FAKE_TOOL", (str(tmp_path / "cuda-*/bin/ncu"),))
    assert find_tool(tool, NOWHERE) == tmp_path / "cuda-13.0/bin/ncu"
    assert find_tool(tool, {"PATH": str(tmp_path / "cuda-9.2/bin")}) == Path(usual.places[0])
    assert find_tool(tool, {"FAKE_TOOL": usual.places[0]}) == Path(usual.places[0])
    with pytest.raises(ToolMissing, match="FAKE_TOOL names"):
        find_tool(tool, {"FAKE_TOOL": str(tmp_path)})


def test_a_tool_inherits_no_secrets() -> None:
    environment = tool_environment({"OPENAI_API_KEY": "x", "HOME": "/root", "PYTHONPATH": "/a"}, EXTRA="1")
    assert "OPENAI_API_KEY" not in environment
    assert environment["HOME"] == "/root" and environment["EXTRA"] == "1" and environment["LC_ALL"] == "C"
    assert environment["PYTHONPATH"].endswith(":/a")
