"""Kernel signatures, from tidy source and from the kind a model writes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.records import DType
from tools.signature import Param, dtype_of, kernel_signatures, normalise_type

SOURCE = """#define BLOCK 128
#define KERNEL extern "C" __global__
#define SCALAR float
typedef const float* in_ptr;
using out_ptr = double*;

extern "C" {
__global__ void __launch_bounds__(256, 2)
first(const float* __restrict__ x,   // "float* not_a_param"
      float4 *y, /* int hidden, */
      int n, long long m,
      unsigned char const* z) { if (n) { y[0].x = x[0]; } }
}
extern "C" __launch_bounds__(BLOCK * 2) __global__ void second(__grid_constant__ const int q,
    const __half2 *__restrict__ h, SCALAR x[], float const * const p, float** pp, unsigned u, in_ptr a, out_ptr b) {}
template <typename T, int N> __global__ void third(T* p) {}
extern "C" __global__ void fourth(float*, long);
KERNEL void fifth(void) {}
// extern "C" __global__ void commented(int x) {}
__constant__ const char text[] = "extern \\"C\\" __global__ void quoted(int y) { ";
namespace inner { __global__ void sixth(cuda::std::int64_t a, uint8_t* b, bool c) {} }
extern "C" __global__ __attribute__((used)) void __cluster_dims__(2, 1, 1) seventh(__nv_bfloat16* w) {}
"""


def test_every_kernel_is_found_and_nothing_else() -> None:
    found = kernel_signatures(SOURCE)
    assert list(found) == ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"]
    assert [s.line for s in found.values()] == [9, 14, 16, 17, 18, 21, 22]
    assert [s.extern_c for s in found.values()] == [True, True, False, True, True, False, True]
    assert [s.template for s in found.values()] == [False, False, True, False, False, False, False]
    assert [name for name, s in found.items() if not s.defined] == ["fourth"]


def test_launch_bounds_of_thousands_of_digits_are_not_read() -> None:
    source = f'extern "C" __global__ void __launch_bounds__({"9" * 5000}) k(float* y) {{ y[0] = 1.0f; }}'
    assert kernel_signatures(source)["k"].launch_bounds is None


def test_launch_bounds_are_read_through_macros_and_products() -> None:
    found = kernel_signatures(SOURCE)
    assert found["first"].launch_bounds == (256, 2)
    assert found["second"].launch_bounds == (256,)
    assert found["third"].launch_bounds is None
    source = 'extern "C" __global__ void __launch_bounds__(THREADS) k(float* x) {}'
    assert kernel_signatures(source, (("THREADS", "512"),))["k"].launch_bounds == (512,)
    assert kernel_signatures(source)["k"].launch_bounds is None


def test_parameters_come_with_type_constness_line_and_dtype() -> None:
    assert kernel_signatures(SOURCE)["first"].params == (
        Param("x", "float", True, True, 9, DType.F32, restrict=True),
        Param("y", "float4", True, False, 10, DType.F32, 4),
        Param("n", "int", False, False, 11, DType.I32),
        Param("m", "long long", False, False, 11, DType.I64),
        Param("z", "unsigned char", True, True, 12, DType.U8),
    )


def test_arrays_aliases_and_odd_spellings_are_resolved() -> None:
    params = kernel_signatures(SOURCE)["second"].params
    assert [(p.name, p.ctype, p.pointer, p.const, p.dtype, p.width) for p in params] == [
        ("q", "int", False, True, DType.I32, 1),
        ("h", "__half2", True, True, DType.F16, 2),
        ("x", "float", True, False, DType.F32, 1),
        ("p", "float", True, True, DType.F32, 1),
        ("pp", "float*", True, False, None, 1),
        ("u", "unsigned int", False, False, None, 1),
        ("a", "float", True, True, DType.F32, 1),
        ("b", "double", True, False, DType.F64, 1),
    ]


def test_unnamed_void_and_namespaced_parameters() -> None:
    found = kernel_signatures(SOURCE)
    assert [(p.name, p.dtype) for p in found["fourth"].params] == [("", DType.F32), ("", DType.I64)]
    assert found["fifth"].params == ()
    assert [p.dtype for p in found["sixth"].params] == [DType.I64, DType.U8, DType.BOOL]
    assert found["seventh"].params[0].dtype is DType.BF16


def test_broken_code_elsewhere_does_not_hide_a_kernel() -> None:
    source = '__device__ float f( { return ; }\nextern "C" __global__ void k(const float* x, int n) { int a = ; }\n'
    assert [p.name for p in kernel_signatures(source)["k"].params] == ["x", "n"]


def test_a_definition_beats_its_declaration() -> None:
    source = 'extern "C" __global__ void k(float*, int);\nextern "C" __global__ void k(float* x, int n) {}\n'
    assert [p.name for p in kernel_signatures(source)["k"].params] == ["x", "n"]


@pytest.mark.parametrize(
    ("text", "ctype", "dtype", "width"),
    [
        ("unsigned const char", "unsigned char", DType.U8, 1),
        ("long long int", "long long", DType.I64, 1),
        ("short int", "short", DType.I16, 1),
        ("signed char", "signed char", DType.I8, 1),
        ("unsigned", "unsigned int", None, 1),
        ("const volatile float", "float", DType.F32, 1),
        ("std::int64_t", "int64_t", DType.I64, 1),
        ("__nv_bfloat162", "__nv_bfloat162", DType.BF16, 2),
        ("int4", "int4", DType.I32, 4),
        ("Pack<float>", "Pack<float>", None, 1),
    ],
)
def test_c_types_map_to_dtypes(text: str, ctype: str, dtype: DType | None, width: int) -> None:
    assert normalise_type(text) == ctype
    assert dtype_of(ctype) == (dtype, width)


TYPES = {
    "float": DType.F32,
    "double": DType.F64,
    "int": DType.I32,
    "long long": DType.I64,
    "__half": DType.F16,
}
SPACE = st.sampled_from([" ", "\n", "  ", " /* , ) */ ", " // , )\n"])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(TYPES)), st.booleans(), st.booleans()), max_size=6),
    SPACE,
    SPACE,
)
def test_any_layout_gives_back_the_parameters_it_was_made_of(
    params: list[tuple[str, bool, bool]], before: str, after: str
) -> None:
    written = [
        f"{'const ' if const else ''}{kind}{before}{'*' if pointer else ''} p{i}"
        for i, (kind, pointer, const) in enumerate(params)
    ]
    source = f'extern "C"{before}__global__{after}void k({f",{after}".join(written)}) {{}}'
    found = kernel_signatures(source)["k"].params
    assert [(p.name, p.ctype, p.pointer, p.const, p.dtype) for p in found] == [
        (f"p{i}", kind, pointer, const, TYPES[kind]) for i, (kind, pointer, const) in enumerate(params)
    ]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_parser_raise(text: str) -> None:
    assert isinstance(kernel_signatures(text + "\n" + SOURCE), dict)
