"""Capture through the child's own handler: graphs, refusals and twins. The process itself: test_child.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.errors import CaptureFailed
from memory.records import DType, Graph, Problem, SpecialArgument, Target
from tests.tools.modules import source_of, target_of, written
from tools.capture_child import CaptureHandler
from tools.capture_records import CaptureReply, CaptureRequest
from tools.target import parse_target

# torch.export itself uses what torch.utils._pytree deprecates, and warns of recurrent layers' cached weight lists.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The tensor attributes.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*quantize.*:UserWarning"),
]


@pytest.fixture(autouse=True)
def _own_import_path() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


def capture_here(target: Target, reduce_above: int | None = None) -> CaptureReply:
    request = CaptureRequest(target=target, reduce_above=reduce_above)
    handler = CaptureHandler(print)
    return CaptureReply.model_validate_json(handler.handle(request.model_dump_json().encode()))


def problem_of(
    folder: Path, forward: str, inputs: str, *, init: str = "pass", arguments: str = "x"
) -> Problem:
    return capture_here(target_of(folder, forward, inputs, init=init, arguments=arguments)).problem


def ops(graph: Graph) -> list[str]:
    return [node.op.split(".")[1] for node in graph.nodes]


def test_layer_norm_and_gelu_become_the_operations_that_eager_dispatches(tmp_path: Path) -> None:
    init = "self.norm = nn.LayerNorm(8)"
    problem = problem_of(tmp_path, "return F.gelu(self.norm(x))", "[torch.randn(4, 8)]", init=init)
    graph = problem.graph
    assert ops(graph) == ["native_layer_norm", "gelu"]
    assert graph.inputs == ("x",) and [e.value for e in graph.state] == ["norm_weight", "norm_bias"]
    assert graph.nodes[0].outputs[1:] == (None, None)
    assert problem.training and problem.output_structure == "tensor"
    assert problem.work.min_bytes == 4 * (32 + 8 + 8 + 32)


def test_batch_norm_in_training_reports_the_statistics_it_changes(tmp_path: Path) -> None:
    problem = problem_of(
        tmp_path, "return self.b(x)", "[torch.randn(4, 8)]", init="self.b = nn.BatchNorm1d(8)"
    )
    assert set(problem.graph.updates) == {"b_running_mean", "b_running_var", "b_num_batches_tracked"}
    still = problem_of(
        tmp_path, "return self.b(x)", "[torch.randn(4, 8)]", init="self.b = nn.BatchNorm1d(8)\nself.eval()"
    )
    assert still.graph.updates == {} and not still.training


def test_huge_inputs_are_captured_without_their_memory(tmp_path: Path) -> None:
    target = target_of(tmp_path, "return torch.relu(x)", "[torch.randn(4096, 393216)]")
    reply = capture_here(target, reduce_above=1 << 20)
    assert reply.problem.graph.values["x"].shape == (4096, 393216)
    assert reply.reduced is not None and reply.reduced.reduced_from == {"x": (4096, 393216)}
    assert reply.reduced.graph.values["x"].shape == (2, 196608)


def test_a_twin_of_a_split_has_as_many_parts(tmp_path: Path) -> None:
    body = "return torch.relu(torch.split(x, 24, dim=0)[0])"
    reply = capture_here(target_of(tmp_path, body, "[torch.randn(64, 3)]"), reduce_above=200)
    parts = [[len(n.outputs) for n in p.graph.nodes] for p in (reply.problem, reply.reduced or reply.problem)]
    assert parts[0] == parts[1] and 3 in parts[0]


def test_a_twin_keeps_weights_and_operations(tmp_path: Path) -> None:
    target = target_of(
        tmp_path, "return self.l(x)", "[torch.randn(64, 64)]", init="self.l = nn.Linear(64, 64)"
    )
    reply = capture_here(target, reduce_above=2000)
    assert reply.reduced is not None
    assert reply.reduced.graph.values["l_weight"].shape == (64, 64)
    assert reply.reduced.graph.values["x"].shape == (8, 64)
    assert ops(reply.reduced.graph) == ops(reply.problem.graph)


def test_plain_numbers_are_baked_in_and_special_arguments_kept(tmp_path: Path) -> None:
    forward = "return (x * k).masked_fill(x > 0, float('-inf')).to(torch.bfloat16)"
    graph = problem_of(tmp_path, forward, "[torch.randn(4), 2.5]", arguments="x, k").graph
    assert graph.inputs == ("x",) and graph.nodes[0].args[1] == 2.5
    assert SpecialArgument(float="-inf") in [a for node in graph.nodes for a in node.args]
    assert {"dtype": SpecialArgument(dtype=DType.BF16)} in [node.kwargs for node in graph.nodes]


def test_in_place_arithmetic_on_intermediates_becomes_functional(tmp_path: Path) -> None:
    graph = problem_of(tmp_path, "y = x * 2\ny += 1\nreturn y.relu_()", "[torch.randn(4)]").graph
    assert ops(graph) == ["mul", "add", "relu"]


def test_dead_work_copies_and_inactive_dropout_leave_no_node(tmp_path: Path) -> None:
    forward = "x.exp()\nreturn F.dropout(self.d(x.detach()), 0.5, training=False) + 1"
    graph = problem_of(tmp_path, forward, "[torch.randn(4)]", init="self.d = nn.Dropout(0.0)").graph
    assert ops(graph) == ["add"] and graph.nodes[0].args[0] == "x"


def test_attention_and_recurrent_layers_stay_whole(tmp_path: Path) -> None:
    forward = "y, _ = self.l(x)\nreturn F.scaled_dot_product_attention(y, y, y)"
    graph = problem_of(tmp_path, forward, "[torch.randn(2, 3, 4)]", init="self.l = nn.LSTM(4, 4)").graph
    assert [op for op in ops(graph) if op != "zeros"] == ["lstm", "scaled_dot_product_attention"]


def test_tensors_written_in_the_code_become_constants(tmp_path: Path) -> None:
    init = "self.k = torch.arange(2.0)"
    graph = problem_of(
        tmp_path, "return x * torch.tensor([1.0, 2.0]) + self.k", "[torch.randn(2)]", init=init
    ).graph
    assert [entry.kind for entry in graph.state] == ["constant", "constant"] and ops(graph) == ["mul", "add"]


def test_several_outputs_may_be_inputs_and_views(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, "return x, x.t(), x.chunk(2)[1]", "[torch.randn(4, 6)]")
    assert problem.output_structure == "tuple" and problem.graph.outputs[0] == "x"
    assert problem.graph.values[problem.graph.outputs[1]].strides == (1, 6)


def test_a_constructor_that_reads_values_is_built_for_real(tmp_path: Path) -> None:
    init = "self.rates = [v.item() for v in torch.linspace(0, 1, 3)]"
    graph = problem_of(tmp_path, "return x * self.rates[1]", "[torch.randn(4)]", init=init).graph
    assert graph.nodes[0].args == ("x", 0.5)


def test_what_export_refuses_is_traced_instead(tmp_path: Path) -> None:
    scripted = "self.s = torch.jit.script(nn.Sigmoid())"
    init = f"self.l = nn.Linear(4, 4)\n{scripted}\nself.register_buffer('n', torch.zeros(4))"
    forward = "self.n.add_(1)\nreturn self.s(self.l(x)) + torch.tensor(2.0)"
    graph = problem_of(tmp_path, forward, "[torch.randn(4, 4)]", init=init).graph
    assert {"addmm", "sigmoid", "add"} <= set(ops(graph)) and list(graph.updates) == ["n"]
    assert {(e.value, e.kind) for e in graph.state} >= {("l_weight", "parameter"), ("n", "buffer")}


def test_marks_that_forward_leaves_on_the_module_do_not_reach_the_graph(tmp_path: Path) -> None:
    graph = problem_of(
        tmp_path, "self.n += 1\nreturn x * self.n", "[torch.randn(4)]", init="self.n = 4"
    ).graph
    assert graph.nodes[0].args == ("x", 5)


@pytest.mark.parametrize(
    ("forward", "part"),
    [
        ("return x[x > 0]", "user_file.py:12: forward: what it computes depends on the values"),
        ("return x * x.sum().item()", "depends on the values"),
        ("return x if x.sum() > 0 else -x", "depends on the values"),
        ("return x + torch.randn_like(x)", "draws random numbers"),
        ("return F.dropout(x, 0.5)", "set p to 0"),
        ("return {'a': x}", "forward returned a dict"),
        ("return x, (x,)", "a tuple of (Tensor, tuple)"),
        ("return x, None", "(Tensor, NoneType)"),
        ("return torch.fft.fft(x).real", "dtype complex64"),
        ("return x.to(torch.float8_e4m3fn)", "dtype float8_e4m3fn"),
        ("return x.relu_()", "changes its input 'x' in place"),
        ("y = x\nreturn y @ torch.ones(3, 3)", "user_file.py:13: forward raised RuntimeError"),
        ("return x + torch.ones(4, device='cuda')", "device=x.device"),
        ("return torch.from_numpy(x.numpy())", "torch operations"),
        ("raise SystemExit(3)", "raised SystemExit: 3"),
    ],
)
def test_a_forward_without_a_fixed_graph_of_tensors_is_refused(
    tmp_path: Path, forward: str, part: str
) -> None:
    with pytest.raises(CaptureFailed) as caught:
        problem_of(tmp_path, forward, "[torch.randn(4)]")
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "part"),
    [
        ("[1 / 0]", "get_inputs() raised ZeroDivisionError"),
        ("{'x': 1}", "get_inputs() returned a dict"),
        ("[[torch.ones(2)]]", "input 0 of get_inputs() is a list"),
        ("[torch.ones(2, dtype=torch.complex64)]", "dtype complex64"),
        ("[torch.ones(2, 2).to_sparse()]", "sparse"),
        ("[torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8)]", "is quantized (quint8)"),
        ("[torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])]", "nested"),
        ("[torch.ones(4, device='meta')]", "meta"),
        ("[torch.Tensor._make_subclass(type('Odd', (torch.Tensor,), {}), torch.ones(4))]", "is a Odd"),
        ("[torch.ones(2), torch.ones(2)]", "takes 2 positional arguments"),
    ],
)
def test_unusable_inputs_are_refused(tmp_path: Path, inputs: str, part: str) -> None:
    with pytest.raises(CaptureFailed) as caught:
        problem_of(tmp_path, "return x", inputs)
    assert part in str(caught.value)


def test_a_quantized_buffer_is_refused(tmp_path: Path) -> None:
    init = "self.register_buffer('w', torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8))"
    with pytest.raises(CaptureFailed, match=r"user_file\.py: w is quantized \(quint8\)"):
        problem_of(tmp_path, "return x * self.w.dequantize()", "[torch.ones(4)]", init=init)


def test_inputs_that_were_quantized_and_restored_are_captured(tmp_path: Path) -> None:
    inputs = "[torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8).dequantize()]"
    assert ops(problem_of(tmp_path, "return x + 1", inputs).graph) == ["add"]


def test_inputs_and_constructor_arguments_can_be_given(tmp_path: Path) -> None:
    source = source_of("return self.l(x)", "None", init="self.l = nn.Linear(n, 2)").replace(
        "(self):", "(self, n):", 1
    )
    target = parse_target(str(written(tmp_path, source)), inputs="f32[3,5]", init="5")
    assert capture_here(target).problem.graph.values["x"].shape == (3, 5)
