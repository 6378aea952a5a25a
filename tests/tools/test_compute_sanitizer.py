"""compute-sanitizer: what its reports say, what counts as having checked, and every way in which it cannot."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memory.records import Diagnostic, LibraryStep, Stage
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tests.tools.fake_tools import ends_soon, fake_tool, missing_tool
from tools.compute_sanitizer import TOOLS, Checked, Sanitized, SanitizerLimits, Unchecked, sanitize_finalist
from tools.devices.build import DeviceSpec
from tools.nsight_findings import MAX_FINDINGS, Finding, SanitizerTool, parse_log
from tools.nsight_process import Tool
from tools.worker import WorkerSpec

GPU = DeviceSpec("cuda", "NVIDIA H200")
NOWHERE = {"PATH": "/nonexistent", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at scaled_relu+0xd0 in kernel.cu:6
=========     by thread (0,0,0) in block (41,0,0)
=========     Access to 0x7f241b0001e0 is out of bounds
=========     and is 33 bytes after the nearest allocation at 0x7f241b000000 of size 448 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at scaled_relu+0xd0 in kernel.cu:6
=========     by thread (1,0,0) in block (41,0,0)
=========     Access to 0x7f241b0001e4 is out of bounds
=========     and is 37 bytes after the nearest allocation at 0x7f241b000000 of size 448 bytes
=========
========= Invalid __shared__ read of size 16 bytes
=========     at scaled_relu+0x210
=========     by thread (31,1,0) in block (0,0,0)
=========     Access to 0x2 is misaligned
=========
========= Error: process didn't terminate successfully
========= Target application returned an error
========= ERROR SUMMARY: 3 errors
"""
OLD_MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 8 bytes
=========     at 0x3c8 in kernel.cu:17:scaled_relu(float const *, float *)
=========     by thread (5,0,0) in block (2,0,0)
=========     Address 0x4 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame: [0x297db6] in libcuda.so.1
=========
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void block_reverse<(bool)0>(float *)+0x150 in kernel.cu:27
=========     and Read access at void block_reverse<(bool)0>(float *)+0x160 in kernel.cu:30 [4,096 hazards]
=========     and Write access at void block_reverse<(bool)0>(float *)+0x150 in kernel.cu:27 [12 hazards]
=========
========= Warning: Race reported between Read access at scaled_relu+0x170
=========     and Write access at scaled_relu+0x148 [4 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
HAZARDS = """========= COMPUTE-SANITIZER
========= Error: Potential WAW hazard detected at __shared__ 0x10 in block (3, 0, 0) :
=========     Write Thread (0, 0, 0) at scaled_relu+0x2f0 in kernel.cu:20
=========     Write Thread (1, 0, 0) at scaled_relu+0x2f0 in kernel.cu:20
=========     Current Value : 1, Incoming Value : 2
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at scaled_relu+0x70
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void cublas::scale_kernel<float>(float *)+0x120
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f3c7ec00000
=========
========= ERROR SUMMARY: 2 errors
========= ERROR SUMMARY: 2742 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
BANNER = "========= COMPUTE-SANITIZER\n"
CLEAN = {
    "memcheck": f"{BANNER}========= ERROR SUMMARY: 0 errors\n",
    "racecheck": f"{BANNER}========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
    "initcheck": f"{BANNER}========= ERROR SUMMARY: 0 errors\n",
}
NOT_ATTACHED = """========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
========= Tracking kernels launched by child processes requires the --target-processes all option.
========= Error: couldn't find exit code.
"""
ALL_CLEAN = f"report()\nlog({CLEAN!r}[value('--tool')])\n"


def findings(text: str, tool: SanitizerTool) -> tuple[Finding, ...]:
    return parse_log(text, tool).findings


def sanitize(
    tool: Tool,
    *,
    deadline_s: float = 20.0,
    spec: DeviceSpec = GPU,
    tools: tuple[SanitizerTool, ...] = TOOLS,
    source: str = KERNEL,
) -> Sanitized:
    limits = SanitizerLimits(deadline_s=deadline_s, tools=tools, tool=tool, environ=NOWHERE)
    program = scaled_relu_program(source)
    return sanitize_finalist(program, scaled_relu_problem(), None, WorkerSpec(spec, Path("cache")), limits)


def only(sanitized: Sanitized) -> Checked | Unchecked:
    (outcome,) = sanitized.outcomes
    return outcome


def test_an_access_out_of_bounds_has_kernel_line_thread_address_and_size() -> None:
    first, second = findings(MEMCHECK, "memcheck")
    assert (first.kind, first.access, first.bytes) == ("out_of_bounds", "write", 4)
    assert (first.kernel, first.line, first.offset) == ("scaled_relu", 6, "0xd0")
    assert (first.thread, first.block, first.address) == ("(0,0,0)", "(41,0,0)", "0x7f241b0001e0")
    assert first.count == 2
    assert (second.kind, second.access, second.bytes, second.line) == ("misaligned", "read", 16, None)
    assert second.thread == "(31,1,0)"


def test_a_finding_reads_as_one_diagnostic() -> None:
    first, second = (f.diagnostic(severe=True) for f in findings(MEMCHECK, "memcheck"))
    assert first == Diagnostic(
        stage=Stage.SANITIZE,
        rule="out_of_bounds",
        message="compute-sanitizer memcheck: write of 4 bytes outside every allocation in scaled_relu, line 6, by"
        " thread (0,0,0) of block (41,0,0), address 0x7f241b0001e0 (2 times)",
        line=6,
        excerpt=first.excerpt,
    )
    assert "33 bytes after the nearest allocation" in first.excerpt
    assert "at a misaligned address in scaled_relu at 0x210" in second.message


def test_the_layout_of_older_versions_is_read_too() -> None:
    (found,) = findings(OLD_MEMCHECK, "memcheck")
    assert (found.kernel, found.line, found.offset, found.address) == ("scaled_relu", 17, "0x3c8", "0x4")
    assert (found.kind, found.access, found.bytes) == ("out_of_bounds", "read", 8)


def test_a_log_that_lost_its_indentation_reads_the_same() -> None:
    flat = MEMCHECK.replace("=========     ", "========= ")
    assert [(f.kernel, f.line, f.thread, f.address, f.count) for f in findings(flat, "memcheck")] == [
        (f.kernel, f.line, f.thread, f.address, f.count) for f in findings(MEMCHECK, "memcheck")
    ]


def test_a_race_names_both_accesses_and_a_warning_stays_one() -> None:
    error, warning = findings(RACECHECK, "racecheck")
    assert (error.kind, error.access, error.kernel, error.line) == (
        "race",
        "write against read",
        "block_reverse",
        27,
    )
    assert error.certain and error.count == 4108
    assert not warning.certain and warning.access == "read against write"
    assert "__syncthreads()" in error.diagnostic(severe=True).message


def test_a_hazard_report_has_its_threads_and_block() -> None:
    (found,) = findings(HAZARDS, "racecheck")
    assert (found.access, found.block, found.address, found.line) == ("WAW", "(3,0,0)", "0x10", 20)
    assert found.thread == "(0,0,0) and (1,0,0)"


def test_reads_of_unwritten_memory_are_told_apart_by_kernel() -> None:
    ours, theirs = findings(INITCHECK, "initcheck")
    assert (ours.kind, ours.kernel, ours.bytes, ours.address) == (
        "uninitialised_read",
        "scaled_relu",
        4,
        "0x7f3c7ec000fc",
    )
    assert theirs.kernel == "cublas::scale_kernel"
    assert parse_log(INITCHECK, "initcheck").errors == 2


@pytest.mark.parametrize("tool", TOOLS)
def test_a_clean_log_has_a_summary_and_no_finding(tool: SanitizerTool) -> None:
    log = parse_log(CLEAN[tool], tool)
    assert (log.findings, log.errors, log.troubles) == ((), 0, ())


def test_what_is_not_recognised_is_still_a_finding() -> None:
    report = "========= Stack overflow\n=========     at scaled_relu+0x40\n"
    text = f"{BANNER}{report}========= ERROR SUMMARY: 1 error\n"
    (found,) = findings(text, "memcheck")
    assert (found.kind, found.kernel) == ("sanitizer", "scaled_relu")
    assert "Stack overflow" in found.diagnostic(severe=True).message


def test_a_flood_of_reports_is_cut() -> None:
    block = MEMCHECK.split("=========\n")[1]
    text = "=========\n".join(block.replace("0xd0", f"0x{i:x}") for i in range(16, 116))
    assert len(findings(text, "memcheck")) == MAX_FINDINGS


def test_silence_of_all_three_over_a_whole_run_is_clean(tmp_path: Path) -> None:
    sanitized = sanitize(fake_tool(tmp_path, "compute-sanitizer", ALL_CLEAN))
    assert sanitized.clean
    assert [outcome.tool for outcome in sanitized.outcomes] == list(TOOLS)


def test_a_fault_ends_the_check_and_is_severe(tmp_path: Path) -> None:
    body = f"report('the program broke its CUDA context')\nlog({MEMCHECK!r})\nsys.exit(86)\n"
    sanitized = sanitize(fake_tool(tmp_path, "compute-sanitizer", body))
    assert not sanitized.clean
    assert [outcome.tool for outcome in sanitized.outcomes] == ["memcheck"]
    assert [fault.rule for fault in sanitized.faults] == ["out_of_bounds", "misaligned"]


def test_a_read_in_a_library_kernel_is_noted_and_no_fault(tmp_path: Path) -> None:
    text = INITCHECK.replace("at scaled_relu+", "at void cublas::other<float>(float *)+")
    sanitized = sanitize(
        fake_tool(tmp_path, "compute-sanitizer", f"report()\nlog({text!r})\n"), tools=("initcheck",)
    )
    assert isinstance(only(sanitized), Checked)
    assert sanitized.diagnostics and not sanitized.faults


def test_a_device_function_of_the_program_is_its_own_code(tmp_path: Path) -> None:
    text = INITCHECK.replace("at scaled_relu+", "at helper(float)+")
    source = "__device__ float helper(float v) { return v; }\n" + KERNEL
    tool = fake_tool(tmp_path, "compute-sanitizer", f"report()\nlog({text!r})\n")
    assert sanitize(tool, tools=("initcheck",), source=source).faults
    assert not sanitize(tool, tools=("initcheck",)).faults


def test_a_race_that_is_only_a_warning_is_no_fault(tmp_path: Path) -> None:
    text = RACECHECK.replace("Error: Race", "Warning: Race")
    sanitized = sanitize(
        fake_tool(tmp_path, "compute-sanitizer", f"report()\nlog({text!r})\n"), tools=("racecheck",)
    )
    assert isinstance(only(sanitized), Checked)
    assert len(sanitized.diagnostics) == 2 and not sanitized.faults


def test_our_kernels_are_watched_alone_where_that_is_enough(tmp_path: Path) -> None:
    body = f"open({str(tmp_path / 'args')!r} + value('--tool'), 'w').write(' '.join(args))\n" + ALL_CLEAN
    body = f"open({str(tmp_path / 'environment')!r}, 'w').write(repr(dict(os.environ)))\n" + body
    assert sanitize(fake_tool(tmp_path, "compute-sanitizer", body)).clean
    memcheck, racecheck, initcheck = ((tmp_path / f"args{tool}").read_text() for tool in TOOLS)
    assert "--kernel-name kernel_name=scaled_relu" in memcheck and "--kernel-name" in racecheck
    assert "--kernel-name" not in initcheck
    assert "--error-exitcode 86" in memcheck and "--padding 4096" in memcheck and "--padding" not in racecheck
    environment = (tmp_path / "environment").read_text()
    assert "'PYTORCH_NO_CUDA_MEMORY_CACHING': '1'" in environment
    assert "PYTORCH_CUDA_ALLOC_CONF" not in environment


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"log({NOT_ATTACHED!r})\nsys.exit(255)\n", "not_attached"),
        (
            "log('========= Device not supported. Please refer to the documentation\\n')\nsys.exit(1)\n",
            "not_supported",
        ),
        (f"log({CLEAN['memcheck']!r})\n", "failed"),
        (f"report('CUDA out of memory')\nlog({CLEAN['memcheck']!r})\n", "failed"),
        ("report('CUDA out of memory')\nlog('========= Hardware exception nobody knows\\n')\n", "failed"),
        ("report()\nlog('========= COMPUTE-SANITIZER\\n')\n", "incomplete"),
        ("report()\nlog('========= ERROR SUMMARY: 3 errors\\n')\n", "incomplete"),
        (
            "report()\nlog('========= Internal Sanitizer Error: The Sanitizer encountered an error while launching"
            f" scaled_relu and didn\\'t track the launch.\\n' + {CLEAN['memcheck']!r})\n",
            "incomplete",
        ),
    ],
)
def test_a_run_that_was_not_whole_has_checked_nothing(tmp_path: Path, body: str, reason: str) -> None:
    sanitized = sanitize(fake_tool(tmp_path, "compute-sanitizer", body), tools=("memcheck",))
    outcome = only(sanitized)
    assert isinstance(outcome, Unchecked)
    assert outcome.reason == reason
    assert "go unnoticed" in outcome.message
    assert not sanitized.clean and not sanitized.faults


def test_a_sanitizer_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = f"""
child = subprocess.Popen(["/bin/sleep", "60"])
with open({str(pid_file)!r}, "w") as stream:
    stream.write(str(child.pid))
time.sleep(60)
"""
    started = time.monotonic()
    outcome = only(
        sanitize(fake_tool(tmp_path, "compute-sanitizer", body), deadline_s=1.5, tools=("racecheck",))
    )
    assert isinstance(outcome, Unchecked) and outcome.reason == "timed_out"
    assert time.monotonic() - started < 10
    assert ends_soon(int(pid_file.read_text()))


def test_a_machine_without_the_tool_says_so_for_each(tmp_path: Path) -> None:
    sanitized = sanitize(missing_tool(tmp_path, "compute-sanitizer"))
    assert [outcome.reason for outcome in sanitized.unchecked] == ["no_tool"] * 3
    assert not sanitized.clean


def test_a_simulated_device_is_not_for_it(tmp_path: Path) -> None:
    sanitized = sanitize(missing_tool(tmp_path, "compute-sanitizer"), spec=DeviceSpec("simulator", "h200"))
    assert {outcome.reason for outcome in sanitized.unchecked} == {"no_gpu"}


def test_a_plan_of_library_calls_alone_can_be_checked(tmp_path: Path) -> None:
    tool = fake_tool(tmp_path, "compute-sanitizer", ALL_CLEAN)
    steps = (LibraryStep(op="aten.relu.default", args=("x",), outputs=("y",)),)
    program = scaled_relu_program("", steps=steps, tunables=())
    limits = SanitizerLimits(tool=tool, environ=NOWHERE)
    where = WorkerSpec(GPU, Path("cache"))
    assert sanitize_finalist(program, scaled_relu_problem(), None, where, limits).clean


def test_a_step_that_launches_twice_is_named_once(tmp_path: Path) -> None:
    body = f"assert args.count('--kernel-name') == 1, args\n{ALL_CLEAN}"
    tool = fake_tool(tmp_path, "compute-sanitizer", body)
    program = scaled_relu_program(steps=(scaled_relu_step(), scaled_relu_step()))
    limits = SanitizerLimits(tool=tool, environ=NOWHERE, tools=("memcheck",))
    where = WorkerSpec(GPU, Path("cache"))
    assert isinstance(only(sanitize_finalist(program, scaled_relu_problem(), None, where, limits)), Checked)
