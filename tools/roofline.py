"""Speed of light and modelled times of library operations, from counted work and a GPU's specification. Pure.

Every figure here is modelled and is labelled so wherever it is shown. The efficiencies are what eager PyTorch
reached on an H200 over 246 public problems, rounded; they set a plausible baseline, not a measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.records import DType, Graph, Node, TensorSpec, Work, references
from tools.gpus import GpuSpec

VIEW_OPERATIONS = frozenset(
    "view reshape _unsafe_view _reshape_alias permute transpose t expand squeeze unsqueeze slice select split "
    "split_with_sizes unbind chunk alias detach as_strided diagonal unfold narrow movedim swapaxes".split()
)
"""Operations that only make a new view: no kernel runs."""

_MATMULS = frozenset(("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "linear"))
_ATTENTION_PREFIX = "_scaled_dot_product"
_ROW_OPERATIONS = frozenset(
    "_softmax _log_softmax _safe_softmax logsumexp native_layer_norm native_group_norm native_batch_norm "
    "_native_batch_norm_legit_functional cumsum cumprod max_pool2d_with_indices max_pool3d_with_indices avg_pool2d "
    "avg_pool3d".split()
)

MEMORY_EFFICIENCY = 0.9
"""Share of the copy bandwidth that eager's elementwise and plain reduction kernels reach."""
ROW_EFFICIENCY = 0.6
"""The same for eager's softmax, norm, pooling and scan kernels."""
EVENT_US = 3.0
"""What a pair of CUDA events around a forward reads beyond the kernels' own time; measured on an H200
(docs/lab-notebook.md)."""
MATMUL_EFFICIENCY = 0.85
CONVOLUTION_EFFICIENCY = {1: 0.2, 2: 0.4, 3: 0.05}
"""By spatial rank, of the TF32 rate: cuDNN reached 150-200 TFLOP/s in 2-D and 13-21 in 3-D."""
HOST_LEAD_US = 50.0
"""Timing flushes the L2 before every forward; meanwhile the host issues the first launches."""
VIEW_HOST_US = 2.0
"""Host time of an operation that only makes a view."""


@dataclass(frozen=True)
class StepTime:
    """Modelled time of one step: what the device needs and what the host needs to issue it, both in µs."""

    device_us: float
    host_us: float


def floor_us(work: Work, dtype: DType, gpu: GpuSpec) -> float:
    """Speed of light of one forward in µs: the larger of bytes over bandwidth and FLOPs over the fastest unit.

    The rate is the tensor cores' for f32 (as TF32), f16 and bf16, so a floor is never too high; f64 uses its own.
    """
    memory = work.min_bytes / (gpu.dram_gbps * 1e3)
    compute = work.flops / (_fastest_tflops(dtype, gpu) * 1e6)
    return max(memory, compute)


def _fastest_tflops(dtype: DType, gpu: GpuSpec) -> float:
    if dtype is DType.F64:
        return gpu.fp64_tflops
    return gpu.fp16_tflops if dtype in (DType.F16, DType.BF16) else gpu.tf32_tflops


def timeline_us(steps: Iterable[StepTime]) -> float:
    """What a pair of CUDA events around the steps would read, in µs.

    The host issues ahead of the device, with a lead of HOST_LEAD_US: short programs are bound by their kernels,
    long ones of short kernels by the host.
    """
    host, device = -HOST_LEAD_US, 0.0
    for step in steps:
        host += step.host_us
        device = max(device, host) + step.device_us if step.device_us > 0 else device
    return max(device, host) + EVENT_US


def eager_us(graph: Graph, gpu: GpuSpec) -> float:
    """Modelled time of eager PyTorch on the captured graph, in µs."""
    return timeline_us(node_time(node, graph, gpu) for node in graph.nodes)


def node_time(node: Node, graph: Graph, gpu: GpuSpec) -> StepTime:
    """Modelled time of one captured operation as eager PyTorch runs it."""
    reads = [graph.values[name] for name in references((*node.args, *node.kwargs.values()))]
    writes = [graph.values[name] for name in node.outputs if name is not None]
    return library_time(node.op, reads, writes, gpu)


def library_time(
    op: str, reads: Sequence[TensorSpec], writes: Sequence[TensorSpec], gpu: GpuSpec
) -> StepTime:
    """Modelled time of one ATen operation over tensors of these specs."""
    short = short_name(op)
    if short in VIEW_OPERATIONS:
        return StepTime(0.0, VIEW_HOST_US)
    moved = sum(spec.bytes for spec in (*reads, *writes))
    efficiency = ROW_EFFICIENCY if short in _ROW_OPERATIONS else MEMORY_EFFICIENCY
    memory = moved / (gpu.dram_gbps * efficiency * 1e3)
    compute = library_flops(op, reads, writes) / (_library_tflops(short, reads, gpu) * 1e6)
    return StepTime(gpu.launch_us + max(memory, compute), gpu.host_torch_us)


def short_name(op: str) -> str:
    """`mm` of `aten.mm.default`."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def library_flops(op: str, reads: Sequence[TensorSpec], writes: Sequence[TensorSpec]) -> float:
    """Floating-point operations of one ATen operation (a multiply-add counts 2), from shapes alone."""
    short = short_name(op)
    if not writes or not reads:
        return 0.0
    if short in _MATMULS:
        left = reads[1] if short in ("addmm", "baddbmm", "addmv") else reads[0]
        return 2.0 * writes[0].elements * left.shape[-1]
    if short in ("convolution", "_convolution", "cudnn_convolution") and len(reads) > 1:
        weight = reads[1]
        if len(reads[0].shape) == len(weight.shape) and weight.shape[0] != writes[0].shape[1]:
            # Transposed: every input element meets the weights of its channel.
            return 2.0 * reads[0].elements * (weight.elements / max(weight.shape[0], 1))
        return 2.0 * writes[0].elements * (weight.elements / max(weight.shape[0], 1))
    if short.startswith(_ATTENTION_PREFIX) and len(reads) > 1:
        return 4.0 * reads[0].elements * reads[1].shape[-2]
    return float(max(spec.elements for spec in (*reads, *writes)))


def _library_tflops(short: str, reads: Sequence[TensorSpec], gpu: GpuSpec) -> float:
    dtype = reads[0].dtype if reads else DType.F32
    half = dtype in (DType.F16, DType.BF16)
    if short in ("convolution", "_convolution", "cudnn_convolution"):
        # PyTorch allows TF32 in convolutions by default, but not in matrix products.
        rank = min(max(len(reads[0].shape) - 2, 1), 3)
        return (gpu.fp16_tflops if half else gpu.tf32_tflops) * CONVOLUTION_EFFICIENCY[rank]
    if dtype is DType.F64:
        return gpu.fp64_tflops * MATMUL_EFFICIENCY
    if half and (short in _MATMULS or short.startswith(_ATTENTION_PREFIX)):
        return gpu.fp16_tflops * MATMUL_EFFICIENCY
    return gpu.fp32_tflops * MATMUL_EFFICIENCY
