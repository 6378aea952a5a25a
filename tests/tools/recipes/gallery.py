"""Modules of many operations, most of which no kernel of ours serves: each must still get a correct library plan."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.tools.recipes.subjects import Function

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class WithState(nn.Module):
    """A function of the input and a buffer."""

    def __init__(self, function: Callable[..., object], buffer: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("held", buffer)

    def forward(self, *inputs: torch.Tensor) -> object:
        """Call the function with the buffer last."""
        return self.function(*inputs, self.held)


class Recurrent(nn.Module):
    """A recurrent layer and its final state."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(B, T, F) -> (B, T, H) and the states."""
        out, state = self.layer(x)
        return (out, *state) if isinstance(state, tuple) else (out, state)


class SelfAttention(nn.Module):
    """torch's own multi-head attention on one tensor."""

    def __init__(self, *, need_weights: bool) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(16, 4, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x: torch.Tensor) -> object:
        """(B, T, C) -> (B, T, C), with the weights where they are asked for."""
        out, weights = self.attend(x, x, x, need_weights=self.need_weights)
        return (out, weights) if self.need_weights else out


def _of(function: Callable[..., object], *shapes: tuple[int, ...]) -> Callable[[], Made]:
    return lambda: (Function(function), tuple(torch.randn(shape) for shape in shapes))


def _layer(make: Callable[[], nn.Module], *shapes: tuple[int, ...]) -> Callable[[], Made]:
    return lambda: (make().eval(), tuple(torch.randn(shape) for shape in shapes))


def _indexed(function: Callable[..., object], shape: tuple[int, ...], *highs: int) -> Callable[[], Made]:
    """Index tensors of 7 entries below each of `highs`."""
    return lambda: (Function(function), (torch.randn(shape), *(torch.randint(high, (7,)) for high in highs)))


def _put(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[i] = 2.0
    return y


def _in_place(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y += 1
    y.relu_()
    y[:, 0] = 3.0
    y[1:].mul_(0.5)
    return y


def _grid(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return F.grid_sample(x, at.tanh(), align_corners=False)


def _block_diagonal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    joined: torch.Tensor = torch.block_diag(x, y)  # type: ignore[no-untyped-call]
    return joined


GALLERY: dict[str, Callable[[], Made]] = {
    # --- indexing
    "index": _indexed(lambda x, i: x[i], (9, 6), 9),
    "index_second": _indexed(lambda x, i: x[:, i], (4, 9), 9),
    "index_third": _indexed(lambda x, i: x[:, :, i] * 2, (2, 3, 9), 9),
    "index_pair": _indexed(lambda x, i, j: x[i, j], (9, 6), 9, 6),
    "index_apart": _indexed(lambda x, i, j: x[i, :, j], (9, 3, 6), 9, 6),
    "index_mixed": _indexed(lambda x, i: x[1:, None, i, ::2] + 1, (4, 9, 6), 9),
    "index_state": lambda: (
        WithState(lambda x, held: x[:, held], torch.tensor([3, 1, 2])),
        (torch.randn(4, 5),),
    ),
    "index_mask_state": lambda: (
        WithState(lambda x, held: torch.where(held, x, -x), torch.tensor([True, False, True])),
        (torch.randn(4, 3),),
    ),
    "index_put": _indexed(_put, (9, 6), 9),
    "index_add": _indexed(lambda x, i: x.new_zeros(9, 6).index_add(0, i, x), (7, 6), 9),
    "index_select": _indexed(lambda x, i: x.index_select(1, i).relu(), (4, 9), 9),
    "index_copy": lambda: (
        Function(lambda x, y, i: x.index_copy(0, i, y)),
        (torch.randn(5, 3), torch.randn(2, 3), torch.tensor([4, 1])),
    ),
    "gather": lambda: (
        Function(lambda x, i: x.gather(1, i) * 2),
        (torch.randn(4, 9), torch.randint(9, (4, 5))),
    ),
    "scatter": lambda: (
        Function(lambda x, i: x.new_zeros(4, 9).scatter(1, i, x)),
        (torch.randn(4, 5), torch.stack([torch.randperm(9)[:5] for _ in range(4)])),
    ),
    "scatter_value": lambda: (
        Function(lambda x, i: x.scatter(1, i, 0.5)),
        (torch.randn(4, 5), torch.randint(5, (4, 2))),
    ),
    "scatter_add": lambda: (
        Function(lambda x, i: x.new_zeros(4, 9).scatter_add(1, i, x)),
        (torch.randn(4, 5), torch.randint(9, (4, 5))),
    ),
    "scatter_reduce": lambda: (
        Function(lambda x, i: x.new_zeros(4, 9).scatter_reduce(1, i, x, "amax")),
        (torch.randn(4, 5), torch.randint(9, (4, 5))),
    ),
    "take_along": lambda: (
        Function(lambda x, i: torch.take_along_dim(x, i, 1)),
        (torch.randn(4, 9), torch.randint(9, (4, 5))),
    ),
    "take": _indexed(lambda x, i: x.take(i), (4, 9), 36),
    "embedding": lambda: (nn.Embedding(20, 6), (torch.randint(20, (3, 5)),)),
    "embedding_bag": lambda: (nn.EmbeddingBag(20, 6, mode="sum"), (torch.randint(20, (3, 5)),)),
    "one_hot": lambda: (
        Function(lambda i: (i[:, None] == torch.arange(7)).float()),
        (torch.randint(7, (5,)),),
    ),
    # --- lists
    "cat": _of(lambda x, y: torch.cat([x, y, x.relu()], 1), (3, 4), (3, 5)),
    "cat_rows": _of(lambda x, y: torch.cat([x, y]) + 1, (3, 4), (5, 4)),
    "stack": _of(lambda x, y: torch.stack([x, y, x * y], 1), (3, 4), (3, 4)),
    "hstack_vstack": _of(lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y])), (3, 4), (3, 4)),
    "chunk": _of(lambda x: torch.chunk(x, 3, 1), (4, 10)),
    "chunk_used": _of(lambda x: [p.relu() for p in torch.chunk(x, 3, 1)], (4, 9)),
    "split": _of(lambda x: torch.split(x, 4, 1), (4, 10)),
    "split_sizes": _of(lambda x: torch.split(x * 2, [2, 5, 3], 1), (4, 10)),
    "unbind": _of(lambda x: x.unbind(1), (4, 3, 5)),
    "tensor_split": _of(lambda x: torch.tensor_split(x, 3, 1), (4, 10)),
    "meshgrid": _of(lambda x, y: torch.meshgrid(x, y, indexing="ij"), (3,), (4,)),
    "expand_both": _of(lambda x, y: x.expand_as(x + y) * y.expand(3, 4), (3, 1), (1, 4)),
    "block_diagonal": _of(_block_diagonal, (3, 2), (2, 4)),
    # --- order
    "sort": _of(lambda x: torch.sort(x, 1), (4, 9)),
    "sort_values": _of(lambda x: torch.sort(x, 1, descending=True)[0] * 2, (4, 9)),
    "argsort": _of(lambda x: torch.argsort(x, 1), (4, 9)),
    "topk": _of(lambda x: torch.topk(x, 3, 1), (4, 9)),
    "topk_scores": _of(lambda x: torch.softmax(torch.topk(x, 3, 1)[0], -1), (4, 9)),
    "kthvalue": _of(lambda x: torch.kthvalue(x, 3, 1), (4, 9)),
    "median": _of(lambda x: torch.median(x, 1), (4, 9)),
    "argmax": _of(lambda x: x.argmax(1), (4, 9)),
    "argmax_all": _of(lambda x: x.argmax(), (4, 9)),
    "argmin_keep": _of(lambda x: x.argmin(0, keepdim=True), (4, 9)),
    "max_dim": _of(lambda x: x.max(1), (4, 9)),
    "min_values": _of(lambda x: x.min(1)[0], (4, 9)),
    "aminmax": _of(lambda x: torch.aminmax(x, dim=1), (4, 9)),
    "searchsorted": _of(lambda x, y: torch.searchsorted(x.sort(1)[0], y), (4, 9), (4, 3)),
    "bucketize": _of(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), (4, 9)),
    # --- masks
    "masked_fill": _of(lambda x: x.masked_fill(x > 0, -1e9), (4, 9)),
    "masked_fill_tensor": _of(lambda x, v: x.masked_fill(x > 0, v.sum()), (4, 9), (3,)),
    "where": _of(lambda x, y: torch.where(x > y, x, y * 2), (4, 9), (4, 9)),
    "where_scalar": _of(lambda x: torch.where(x > 0, x, 0.5), (4, 9)),
    "masked_scatter_free": _of(lambda x: (x > 0).float().cumsum(1) * x, (4, 9)),
    "triu": _of(lambda x: torch.triu(x, 1) + torch.tril(x, -1), (5, 5)),
    "logical": _of(lambda x: ((x > 0) & (x < 1)) | torch.isnan(x), (4, 9)),
    "any_all": _of(lambda x: ((x > 0).any(1), (x > -9).all()), (4, 9)),
    # --- products
    "einsum": _of(lambda x, y: torch.einsum("bij,bjk->bik", x, y), (2, 3, 4), (2, 4, 5)),
    "einsum_outer": _of(lambda x, y: torch.einsum("bi,bj->bij", x, y), (2, 3), (2, 4)),
    "einsum_attention": _of(lambda x, y: torch.einsum("bthd,bshd->bhts", x, y), (2, 3, 2, 4), (2, 5, 2, 4)),
    "einsum_diagonal": _of(lambda x: torch.einsum("ii->i", x), (4, 4)),
    "matmul_broadcast": _of(lambda x, y: x @ y, (2, 3, 4), (4, 5)),
    "matmul_vector": _of(lambda x, y: x @ y, (3, 4), (4,)),
    "dot": _of(lambda x, y: torch.dot(x, y), (9,), (9,)),
    "baddbmm": _of(lambda c, x, y: torch.baddbmm(c, x, y, beta=0.5), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "addmm": _of(lambda c, x, y: torch.addmm(c, x, y, alpha=2), (5,), (3, 4), (4, 5)),
    "tensordot": _of(lambda x, y: torch.tensordot(x, y, dims=2), (2, 3, 4), (3, 4, 5)),
    "kron": _of(lambda x, y: torch.kron(x, y), (2, 3), (3, 2)),
    "outer": _of(lambda x, y: torch.outer(x, y), (3,), (4,)),
    "cross": _of(lambda x, y: torch.linalg.cross(x, y), (4, 3), (4, 3)),
    "bilinear": _layer(lambda: nn.Bilinear(3, 4, 5), (2, 3), (2, 4)),
    "cdist": _of(lambda x, y: torch.cdist(x, y), (4, 3), (5, 3)),
    # --- recurrent
    "lstm": _layer(lambda: Recurrent(nn.LSTM(6, 8, 2, batch_first=True)), (3, 5, 6)),
    "lstm_two_ways": _layer(lambda: Recurrent(nn.LSTM(6, 8, bidirectional=True)), (5, 3, 6)),
    "lstm_projected": _layer(lambda: Recurrent(nn.LSTM(6, 8, proj_size=4)), (5, 3, 6)),
    "gru": _layer(lambda: Recurrent(nn.GRU(6, 8, 2, batch_first=True)), (3, 5, 6)),
    "gru_unbatched": _layer(lambda: Recurrent(nn.GRU(6, 8)), (5, 6)),
    "gru_no_bias": _layer(lambda: Recurrent(nn.GRU(6, 8, bias=False)), (5, 3, 6)),
    "rnn_tanh": _layer(lambda: Recurrent(nn.RNN(6, 8, batch_first=True)), (3, 5, 6)),
    "rnn_relu": _layer(lambda: Recurrent(nn.RNN(6, 8, nonlinearity="relu")), (5, 3, 6)),
    "lstm_cell": _layer(lambda: nn.LSTMCell(6, 8), (3, 6)),
    "gru_cell": _layer(lambda: nn.GRUCell(6, 8), (3, 6)),
    # --- attention
    "attention": _of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 8)
    ),
    "attention_causal": _of(
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.3), (2, 4, 6, 8)
    ),
    "attention_mask": _of(
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m > -9), (2, 4, 6, 8), (6, 6)
    ),
    "multihead": _layer(lambda: SelfAttention(need_weights=False), (2, 6, 16)),
    "multihead_weights": _layer(lambda: SelfAttention(need_weights=True), (2, 6, 16)),
    "transformer_layer": _layer(
        lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), (2, 6, 16)
    ),
    # --- convolutions and windows
    "conv_transpose1d": _layer(lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), (2, 4, 9)),
    "conv_transpose2d": _layer(lambda: nn.ConvTranspose2d(4, 4, 3, 2), (2, 4, 5, 6)),
    "conv_transpose3d": _layer(lambda: nn.ConvTranspose3d(4, 6, 3, groups=2), (2, 4, 4, 5, 6)),
    "conv_same": _layer(lambda: nn.Conv2d(4, 6, 3, padding="same", dilation=2), (2, 4, 7, 8)),
    "conv_depthwise": _layer(lambda: nn.Conv2d(4, 4, 3, groups=4, bias=False), (2, 4, 7, 8)),
    "conv_circular": _layer(lambda: nn.Conv1d(4, 6, 3, padding=1, padding_mode="circular"), (2, 4, 9)),
    "unfold": _of(lambda x: F.unfold(x, 3, padding=1), (2, 3, 6, 5)),
    "fold": _of(lambda x: F.fold(x, (4, 5), 2), (2, 12, 12)),
    "tensor_unfold": _of(lambda x: x.unfold(1, 3, 2) * 1.5, (4, 9)),
    "grid_sample": _of(_grid, (2, 3, 6, 5), (2, 4, 4, 2)),
    "affine_grid": _of(lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), (2, 2, 3)),
    "interpolate_nearest": _of(lambda x: F.interpolate(x, scale_factor=2), (2, 3, 4, 5)),
    "interpolate_bilinear": _of(
        lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True), (2, 3, 4, 5)
    ),
    "interpolate_bicubic": _of(lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), (2, 3, 4, 6)),
    "interpolate_linear": _of(lambda x: F.interpolate(x, scale_factor=2, mode="linear"), (2, 3, 4)),
    "interpolate_trilinear": _of(
        lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), (1, 2, 3, 4, 3)
    ),
    "interpolate_area": _of(lambda x: F.interpolate(x, size=(2, 3), mode="area"), (2, 3, 4, 6)),
    "pixel_shuffle": _of(lambda x: F.pixel_shuffle(x, 2), (2, 8, 3, 4)),
    "pixel_unshuffle": _of(lambda x: F.pixel_unshuffle(x, 2), (2, 2, 4, 6)),
    "channel_shuffle": _of(lambda x: F.channel_shuffle(x, 2), (2, 4, 3, 4)),
    "pad_constant": _of(lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), (2, 3, 4)),
    "pad_negative": _of(lambda x: F.pad(x, (-1, 2)), (2, 3, 4)),
    "pad_reflect": _of(lambda x: F.pad(x, (1, 2), mode="reflect"), (2, 3, 4)),
    "pad_replicate": _of(lambda x: F.pad(x, (1, 2, 1, 1), mode="replicate"), (2, 3, 4, 5)),
    "pad_circular": _of(lambda x: F.pad(x, (1, 2), mode="circular"), (2, 3, 4)),
    "max_pool_indices": _of(lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 3, 4, 6)),
    "max_unpool": _of(
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), [2, 2]), (2, 3, 4, 6)
    ),
    "adaptive_pool": _of(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 3, 5, 7)),
    "adaptive_max_pool": _of(lambda x: F.adaptive_max_pool2d(x, 2), (2, 3, 5, 7)),
    "lp_pool": _of(lambda x: F.lp_pool2d(x.abs(), 2.0, 2), (2, 3, 4, 6)),
    # --- scans and statistics
    "cumsum": _of(lambda x: x.cumsum(1), (4, 9)),
    "cumsum_flipped": _of(lambda x: x.flip(1).cumsum(1).flip(1), (4, 9)),
    "cumprod": _of(lambda x: x.cumprod(0), (4, 9)),
    "cummax": _of(lambda x: torch.cummax(x, 1), (4, 9)),
    "logcumsumexp": _of(lambda x: torch.logcumsumexp(x, 1), (4, 9)),
    "diff": _of(lambda x: torch.diff(x, dim=1), (4, 9)),
    "var_mean": _of(lambda x: torch.var_mean(x, 1), (4, 9)),
    "std": _of(lambda x: x.std(0), (4, 9)),
    "rms_norm": _of(lambda x: F.rms_norm(x, (9,)), (4, 9)),
    "norm": _of(lambda x: F.normalize(x, dim=1), (4, 9)),
    "histogram_free": _of(lambda x: (x[:, None] > torch.linspace(-1, 1, 5)).sum(0), (9,)),
    "quantile": _of(lambda x: torch.quantile(x, 0.25, 1), (4, 9)),
    "instance_norm": _layer(lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5)),
    "instance_norm_tracked": _layer(lambda: nn.InstanceNorm2d(3, track_running_stats=True), (2, 3, 4, 5)),
    "local_response": _of(lambda x: F.local_response_norm(x, 3), (2, 5, 4, 3)),
    "cross_entropy": lambda: (
        Function(lambda x, t: F.cross_entropy(x, t)),
        (torch.randn(6, 5), torch.randint(5, (6,))),
    ),
    "cosine": _of(lambda x, y: F.cosine_similarity(x, y), (4, 9), (4, 9)),
    "huber": _of(lambda x, y: F.smooth_l1_loss(x, y), (4, 9), (4, 9)),
    "kl": _of(lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), (4, 9), (4, 9)),
    "glu": _of(lambda x: F.glu(x, 1), (4, 8)),
    "prelu": _layer(lambda: nn.PReLU(3), (2, 3, 4)),
    # --- in place, views, makers
    "in_place": _of(_in_place, (3, 4)),
    "in_place_module": _layer(lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True)), (3, 4)),
    "in_place_slices": _of(lambda x: (x * 1).index_fill_(1, torch.tensor([0, 2]), 1.0), (3, 4)),
    "copy_into": _of(lambda x: torch.zeros(3, 4).copy_(x) + 1, (4,)),
    "diagonal": _of(lambda x: torch.diagonal(x, 1, 1, 2) * 2, (2, 4, 5)),
    "diag_embed": _of(lambda x: torch.diag_embed(x), (2, 4)),
    "as_strided": _of(lambda x: x.as_strided((2, 3), (1, 2)) * 2, (3, 4)),
    "movedim": _of(lambda x: x.movedim(0, -1).relu(), (2, 3, 4)),
    "swapaxes": _of(lambda x: x.swapaxes(0, 2), (2, 3, 4)),
    "roll": _of(lambda x: x.roll((1, -1), (0, 1)), (4, 5)),
    "flip": _of(lambda x: x.flip(0, 1), (4, 5)),
    "rot90": _of(lambda x: torch.rot90(x, 1, (0, 1)), (4, 5)),
    "repeat": _of(lambda x: x.repeat(2, 3), (4, 5)),
    "repeat_interleave": _of(lambda x: x.repeat_interleave(2, 1), (4, 5)),
    "tile": _of(lambda x: x.tile(2), (4, 5)),
    "expand": _of(lambda x: x.expand(3, 4, 5), (4, 1)),
    "flatten_unflatten": _of(lambda x: x.flatten(1).unflatten(1, (2, 6)), (3, 3, 4)),
    "squeeze": _of(lambda x: x.squeeze(1).unsqueeze(-1), (3, 1, 4)),
    "arange": _of(lambda x: x + torch.arange(x.shape[1], dtype=x.dtype), (4, 9)),
    "full_like": _of(lambda x: torch.full_like(x, 2.0) * x + torch.ones_like(x), (4, 9)),
    "eye": _of(lambda x: x + torch.eye(5), (5, 5)),
    "linspace": _of(lambda x: x * torch.linspace(0, 1, 9), (4, 9)),
    "vander": _of(lambda x: torch.vander(x, 4), (5,)),
    "half_inside": _of(lambda x: (x.half() @ x.half().mT).float(), (4, 9)),
    "cast": _of(lambda x: x.half().float() + x.int(), (4, 9)),
    "integers": lambda: (Function(lambda x: (x // 3) % 2 + x.bitwise_and(5)), (torch.randint(50, (4, 9)),)),
    "shifts": lambda: (Function(lambda x: (x << 2) ^ x), (torch.randint(50, (4, 9)),)),
    "booleans": lambda: (Function(lambda x: ~x), (torch.rand(4, 9) > 0.5,)),
    "scalar": _of(lambda x: x.sum(), (4, 9)),
    "scalar_input": _of(lambda x, s: x * s, (4, 9), ()),
    "empty_batch_free": _of(lambda x: x[:, 2:2].sum(1), (4, 9)),
    "half": lambda: (Function(lambda x: torch.softmax(x, 1) @ x.T), (torch.randn(4, 9).half(),)),
    "bfloat16": lambda: (Function(lambda x: (x * 2).sum(1)), (torch.randn(4, 9).bfloat16(),)),
    "double": lambda: (Function(lambda x: x.cumsum(1) / 3), (torch.randn(4, 9).double(),)),
    "linalg_inverse": _of(lambda x: torch.linalg.inv(x @ x.mT + 4 * torch.eye(4)), (4, 4)),
    "linalg_solve": _of(lambda x, y: torch.linalg.solve(x @ x.mT + 4 * torch.eye(4), y), (4, 4), (4, 2)),
    "cholesky": _of(lambda x: torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(4)), (4, 4)),
    "determinant": _of(lambda x: torch.linalg.det(x @ x.mT + torch.eye(4)), (4, 4)),
    "matrix_power": _of(lambda x: torch.linalg.matrix_power(x, 3), (4, 4)),
    "weight_norm": _layer(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), (3, 4)),
    "spectral_norm": _layer(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 5)), (3, 4)),
}
"""Name -> makes a module with its inputs."""


def made(name: str) -> tuple[nn.Module, *tuple[torch.Tensor, ...]]:
    """A module of the gallery and its inputs, always the same."""
    torch.manual_seed(0)
    module, inputs = GALLERY[name]()
    return (module, *inputs)
