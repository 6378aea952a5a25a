"""Logs to diagnostics without a compiler, for what the real one is hard to bring to say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tools.nvrtc_diagnostics import clean_log, excerpt, line_of_kernel, parse_log
from tools.nvrtc_resources import constant_bytes, parse_resources

SOURCE = "int a;\nint b;\n\tint c;\nint d;\n"
FOREIGN = '/etc/passwd(1): error: expected a ";"\n  root:x:0:0:root:/root:/bin/bash\n      ^\n\n'


def test_a_block_about_a_foreign_file_is_reduced_to_the_fact() -> None:
    log = FOREIGN + "kernel.cu(2): error: bad\n  int b;\n      ^\n\n"
    found = parse_log(log, SOURCE, ("/headers",))
    assert [d.line for d in found] == [None, 2]
    assert "root" not in repr(found)
    assert "root" not in clean_log(log, ("/headers",)) and "bad" in clean_log(log, ("/headers",))


def test_a_header_path_that_climbs_out_is_foreign() -> None:
    log = FOREIGN.replace("/etc/passwd", "/headers/../etc/passwd")
    assert "root" not in repr(parse_log(log, SOURCE, ("/headers",))) + clean_log(log, ("/headers",))


def test_a_header_error_keeps_its_name_and_finds_the_callers_line() -> None:
    log = (
        "/headers/cub/x.cuh(90): error: static assertion failed\n    f();\n    ^\n          detected during:\n"
        '            instantiation of "g" at line 12\n            instantiation of "h" at line 3 of kernel.cu\n\n'
    )
    (found,) = parse_log(log, SOURCE, ("/headers", "/headers/cub"))
    assert found.line == 3 and found.message.startswith(
        "in <x.cuh> line 90: static assertion failed (instantiation"
    )
    assert "int c;" in found.excerpt and "^" not in found.excerpt


def test_the_caret_stands_under_its_column_behind_a_tab() -> None:
    lines = excerpt(SOURCE, 3, 5).splitlines()
    assert lines[1] == "    3 | \tint c;"
    assert lines[2] == "      | \t    ^"


def test_errors_come_before_warnings_and_doubles_are_dropped() -> None:
    warning = "kernel.cu(1): warning #177-D: unused\n  int a;\n      ^\n\n"
    error = "kernel.cu(2): error: bad\n  int b;\n      ^\n\n"
    found = parse_log(warning + error + error, SOURCE, ())
    assert [(d.severity, d.line) for d in found] == [("error", 2), ("warning", 1)]


def test_the_kernels_line_is_where_it_is_defined_not_where_its_name_first_stands() -> None:
    assert line_of_kernel("int k(int);\n\n__global__\nvoid __launch_bounds__(32)\nk (int* a) {}", "k") == 5


def test_device_functions_do_not_overwrite_their_kernels_figures() -> None:
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_90'\nptxas info    : Function properties for k\n"
        "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 24 registers, used 1 barriers, 128 bytes smem, 356 bytes cmem[0]\n"
        "ptxas info    : Function properties for _Z1fi\n"
        "ptxas         .     99 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads\n"
    )
    (found,) = parse_resources(log, b"").values()
    assert (found.registers, found.static_shared_bytes, found.stack_bytes) == (24, 128, 8)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (4, 12)


@given(st.text(max_size=300), st.binary(max_size=100))
def test_no_log_and_no_cubin_makes_the_parsers_raise(log: str, cubin: bytes) -> None:
    parse_log(log, SOURCE, ("/headers",))
    parse_resources(log, b"\x7fELF\x02" + cubin)
    constant_bytes(cubin)
