"""Modules over which modelled times are compared with measured ones: memory-bound chains and row reductions."""

from __future__ import annotations

_FORM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features
        {init}

    def forward(self, x):
        {forward}


def get_inputs():
    return [torch.randn({shape})]


def get_init_inputs():
    return [{features}]
"""

_CASES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "silu_scale_add": ("self.b = nn.Parameter(torch.randn(features))", "return torch.nn.functional.silu(x) * 0.5 + self.b", (16384, 4096)),
    "gelu_tanh_mul": ("pass", "return torch.nn.functional.gelu(x, approximate='tanh') * torch.sigmoid(x)", (8192, 4096)),
    "small_pointwise": ("pass", "return torch.tanh(x) + x * x", (512, 512)),
    "softmax": ("pass", "return torch.softmax(x, dim=-1)", (4096, 1024)),
    "softmax_long": ("pass", "return torch.softmax(x, dim=-1)", (512, 32768)),
    "softmax_very_long": ("pass", "return torch.softmax(x, dim=-1)", (64, 393216)),
    "log_softmax": ("pass", "return torch.log_softmax(x, dim=-1)", (16384, 512)),
    "layer_norm": ("self.n = nn.LayerNorm(features)", "return self.n(x)", (16384, 1024)),
    "layer_norm_gelu": ("self.n = nn.LayerNorm(features)", "return torch.nn.functional.gelu(self.n(x))", (2048, 1024)),
    "layer_norm_gelu_large": ("self.n = nn.LayerNorm(features)", "return torch.nn.functional.gelu(self.n(x))", (16384, 4096)),
    "rms_norm": ("self.w = nn.Parameter(torch.ones(features))", "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w", (16384, 2048)),
    "row_sum": ("pass", "return (x * x).sum(dim=-1)", (8192, 8192)),
    "row_max_bias": ("self.b = nn.Parameter(torch.randn(features))", "return (x + self.b).amax(dim=-1)", (32768, 256)),
    "mean_sub_scale": ("pass", "return (x - x.mean(dim=-1, keepdim=True)) * 2.0", (65536, 64)),
    "channel_softmax": ("pass", "return torch.softmax(x, dim=1)", (64, 128, 64, 64)),
    "residual_norm_silu": ("self.n = nn.LayerNorm(features)", "return torch.nn.functional.silu(self.n(x + torch.tanh(x)))", (8192, 768)),
}  # fmt: skip


def modules() -> dict[str, str]:
    """Name -> text of a module file in the KernelBench form."""
    texts: dict[str, str] = {}
    for name, (init, forward, shape) in _CASES.items():
        features = shape[-1]
        texts[name] = _FORM.format(
            init=init, forward=forward, shape=", ".join(map(str, shape)), features=features
        )
    return texts
