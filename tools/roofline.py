"""Speed of light and modelled times of library operations, from counted work and a GPU's specification. Pure.

Every figure here is modelled and is labelled so wherever it is shown. The efficiencies are what eager PyTorch
reached on an H200 over 246 public problems, rounded; they set a plausible baseline, not a measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memory.records import Argument, DType, Graph, TensorSpec, Work
from tools.gpus import GpuSpec
from tools.work import MATMULS, RECURRENT, Call, call_bytes, call_flops, node_call, sequential_steps
from tools.work import VIEW_OPERATIONS as VIEW_OPERATIONS
from tools.work import short_name as short_name

_ATTENTION = "scaled_dot_product"
_ROW_OPERATIONS = frozenset(
    "_softmax _log_softmax _safe_softmax logsumexp native_layer_norm native_group_norm native_batch_norm "
    "_native_batch_norm_legit_functional _native_batch_norm_legit cumsum cumprod max_pool2d_with_indices "
    "max_pool3d_with_indices avg_pool2d avg_pool3d".split()
)
_SCATTERS = frozenset("slice_scatter select_scatter diagonal_scatter as_strided_scatter".split())
"""What follows a write into a part of a tensor in a functional graph: a copy of the whole, which eager never makes."""

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
HOST_LEAD_US = 150.0
"""Timing flushes the L2 before every forward; meanwhile the host issues the first launches. As in the race on a GPU
(tools.devices.cuda_race)."""
VIEW_HOST_US = 2.0
"""Host time of an operation that only makes a view."""
RECURRENT_STEP_US = {"lstm": 20.0, "gru": 30.0, "rnn_tanh": 20.0, "rnn_relu": 20.0}
"""Time of one cell of a recurrent layer, two short kernels and their issue; cells follow one after the other. Measured
on an H200 with 256 features, 10 rows, 512 steps, 6 layers, one and two directions: LSTM 19.6 to 23.3, GRU 28.5 to
35.1. A plain layer was not measured and is taken to be as an LSTM."""


@dataclass(frozen=True)
class StepTime:
    """Modelled time of one step: what the device needs and what the host needs to issue it, both in µs."""

    device_us: float
    host_us: float


@dataclass(frozen=True)
class Floor:
    """Speed of light of one forward, by what bounds it."""

    memory_us: float
    """Least bytes over the copy bandwidth."""
    compute_us: float
    """FLOPs over the fastest unit's rate."""
    tflops: float
    """That rate."""

    @property
    def us(self) -> float:
        """The larger of the two."""
        return max(self.memory_us, self.compute_us)


def floor_of(work: Work, dtype: DType, gpu: GpuSpec) -> Floor:
    """Speed of light of one forward with its two bounds.

    The rate is the tensor cores' for f32 (as TF32), f16 and bf16, so a floor is never too high; f64 uses its own.
    """
    tflops = _fastest_tflops(dtype, gpu)
    return Floor(work.min_bytes / (gpu.dram_gbps * 1e3), work.flops / (tflops * 1e6), tflops)


def floor_us(work: Work, dtype: DType, gpu: GpuSpec) -> float:
    """Speed of light of one forward in µs: the larger of bytes over bandwidth and FLOPs over the fastest unit."""
    return floor_of(work, dtype, gpu).us


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


@dataclass(frozen=True)
class Demand:
    """What a forward asks of the host, which issues it, and of the device, which runs it, in µs."""

    host_us: float
    device_us: float

    @property
    def host_bound(self) -> bool:
        """True where issuing takes longer than running, beyond the lead that timing gives the host."""
        return self.host_us - HOST_LEAD_US > self.device_us


def demand(steps: Iterable[StepTime]) -> Demand:
    """Host and device time of the steps, each on its own."""
    listed = list(steps)
    return Demand(sum(step.host_us for step in listed), sum(step.device_us for step in listed))


def eager_times(graph: Graph, gpu: GpuSpec) -> list[StepTime]:
    """Modelled time of every captured operation as eager PyTorch runs it."""
    made = {
        name for node in graph.nodes if short_name(node.op) not in VIEW_OPERATIONS for name in node.outputs
    }
    calls = [node_call(node, graph.values) for node in graph.nodes]
    return [
        _own_time(call, gpu) if call.names and call.names[0] in made else library_time(call, gpu)
        for call in calls
    ]


def _own_time(call: Call, gpu: GpuSpec) -> StepTime:
    """Of an operation on a tensor that forward made: what stands for writing into a part of it writes that part."""
    if call.short in _SCATTERS:
        return StepTime(0.0, 0.0)  # the part was written by the operation before
    if call.short == "index_put":
        call = replace(call, names=call.names[1:], reads=call.reads[1:], writes=call.reads[-1:])
    return library_time(call, gpu)


def library_time(call: Call, gpu: GpuSpec) -> StepTime:
    """Modelled time of one ATen operation, in eager PyTorch or as a library step of a plan."""
    short = call.short
    if call.is_view:
        return StepTime(0.0, VIEW_HOST_US)
    efficiency = ROW_EFFICIENCY if short in _ROW_OPERATIONS else MEMORY_EFFICIENCY
    memory = call_bytes(call) / (gpu.dram_gbps * efficiency * 1e3)
    compute = call_flops(call) / (_library_tflops(call, gpu) * 1e6)
    steps = sequential_steps(call) * RECURRENT_STEP_US[short] if short in RECURRENT else 0.0
    return StepTime(gpu.launch_us + max(memory, compute, steps), gpu.host_torch_us)


def library_flops(
    op: str, reads: Sequence[TensorSpec], writes: Sequence[TensorSpec], args: tuple[Argument, ...] = ()
) -> float:
    """Floating-point operations of one ATen operation (a multiply-add counts 2), as `tools.work` counts them.

    args: its positional arguments; without them a causal attention counts whole, and whether a convolution is
    transposed is read off the shapes.
    """
    names = tuple(f"read_{position}" for position in range(len(reads)))
    return float(call_flops(Call(op, args, {}, names, tuple(reads), tuple(writes))))


def _library_tflops(call: Call, gpu: GpuSpec) -> float:
    short, dtype = call.short, call.reads[0].dtype if call.reads else DType.F32
    half = dtype in (DType.F16, DType.BF16)
    if dtype is DType.F64:
        return gpu.fp64_tflops * MATMUL_EFFICIENCY
    if short == "convolution":
        # PyTorch allows TF32 in convolutions by default, but not in matrix products.
        rank = min(max(len(call.reads[0].shape) - 2, 1), 3)
        return (gpu.fp16_tflops if half else gpu.tf32_tflops) * CONVOLUTION_EFFICIENCY[rank]
    if half and (short in MATMULS or short in RECURRENT or _ATTENTION in short):
        return gpu.fp16_tflops * MATMUL_EFFICIENCY
    return gpu.fp32_tflops * MATMUL_EFFICIENCY
