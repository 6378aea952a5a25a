"""The simulator under the device port's contract, and what only the simulator says."""

from __future__ import annotations

import pytest

from tests.problems import scaled_relu_problem, scaled_relu_program
from tests.tools.conformance import *  # noqa: F403 - the suite is the import
from tools.binding import bind
from tools.devices.port import Device, Measured


@pytest.fixture
def device(simulated_h200: Device) -> Device:
    """The device that the suite runs on."""
    return simulated_h200


def test_a_modelled_time_counts_sectors(device: Device) -> None:
    measured = device.measure(bind(scaled_relu_program(), scaled_relu_problem(4096, 4096)))
    assert isinstance(measured, Measured)
    assert measured.steps[0].load_sectors_per_request == pytest.approx(4.0, rel=0.1)
