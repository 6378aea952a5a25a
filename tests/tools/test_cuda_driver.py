"""What is said where torch and the NVIDIA driver do not fit each other. Needs neither."""

from __future__ import annotations

import pytest

from tools.devices.cuda_driver import mismatch


@pytest.mark.parametrize(
    ("built_for", "driver", "said"),
    [
        (None, 13000, "built without CUDA: install a CUDA build"),
        ("13.0", 12040, "too old: it runs CUDA 12.4, and torch 2.11.0 was built for 13.0; update the driver"),
        ("12.8", 12040, "CUDA_VISIBLE_DEVICES"),
        ("12.8", 13000, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_a_gpu_that_torch_cannot_use_is_explained_with_a_remedy(
    built_for: str | None, driver: int, said: str
) -> None:
    assert said in mismatch("2.11.0", built_for, driver)
