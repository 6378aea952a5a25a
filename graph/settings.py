"""All settings of a run in one frozen object: defaults < warpsmith.toml < environment (WARPSMITH_*) < command line."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from memory.errors import BadInput
from tools.devices.build import DeviceSpec
from tools.gpus import gpu_for_arch, gpu_named
from tools.policy import Policy

SETTINGS_FILE = "warpsmith.toml"


class Settings(BaseSettings):
    """Resolved settings; stored with every run."""

    model_config = SettingsConfigDict(
        env_prefix="WARPSMITH_", toml_file=SETTINGS_FILE, extra="forbid", frozen=True
    )

    home: Path = Path("~/.warpsmith")
    """Where runs, the archive and compile caches live."""
    export_dir: Path = Path("warpsmith-out")
    """Where winners are exported."""
    gpu: str = "h200"
    """GPU that the simulator stands for: a name, or an architecture such as sm_90a."""
    workers: int = Field(default=0, ge=0, le=256)
    """Evaluations at once; 0 means one per core, at most 8."""
    population: int = Field(default=8, ge=1, le=1000)
    """Candidates per generation, and survivors kept."""
    generations: int = Field(default=5, ge=1, le=10_000)
    patience: int = Field(default=2, ge=1)
    """Generations in a row without a gain before the run stops."""
    wall_s: float = Field(default=900.0, gt=0)
    """Wall seconds of searching, over all resumes; verification of the winner is not cut short."""
    seed: int = 0
    relative_tolerance: float = Field(default=1e-6, gt=0)
    eager_factor: float = Field(default=2.0, ge=1)
    soak_trials: int = Field(default=100, ge=0)
    deadline_s: float = Field(default=60.0, gt=0)
    capture_deadline_s: float = Field(default=120.0, gt=0)
    verify_elements: int = Field(default=1 << 20, ge=1024)
    """The simulator verifies larger problems at reduced shapes of at most this many elements."""
    archive_url: str | None = None
    """A Chroma server for the archive; None keeps it under `home`."""
    review: bool = False
    """Pause for a person's approval before a winner is archived and exported."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line first, then the environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def root(self) -> Path:
        """`home` as an absolute path: workers and compilers run in other folders."""
        return self.home.expanduser().resolve()

    @property
    def gpu_name(self) -> str:
        """Canonical name of the simulated GPU. Raises BadInput for an unknown one."""
        return gpu_for_arch(self.gpu).name if self.gpu.startswith("sm_") else gpu_named(self.gpu).name

    @property
    def worker_count(self) -> int:
        """Evaluations at once."""
        return self.workers or min(os.cpu_count() or 1, 8)

    @property
    def policy(self) -> Policy:
        """How candidates are judged."""
        return Policy(
            relative_tolerance=self.relative_tolerance,
            eager_factor=self.eager_factor,
            soak_trials=self.soak_trials,
            deadline_s=self.deadline_s,
        )

    @property
    def device(self) -> DeviceSpec:
        """The device of the run."""
        return DeviceSpec(kind="simulator", gpu=self.gpu_name, timeout_s=self.deadline_s / 2)

    def as_text(self) -> dict[str, str]:
        """Every setting as text, for the run's record."""
        return {name: str(value) for name, value in self.model_dump(mode="json").items()}


def resolve_settings(**given: object) -> Settings:
    """Settings with the command line's values; None means not given. Raises BadInput naming the setting."""
    try:
        settings = Settings.model_validate({name: v for name, v in given.items() if v is not None})
        _ = settings.gpu_name
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"setting {name!r} is {first['input']!r}: {first['msg'].lower()}") from error
    return settings


def settings_from_run(stored: dict[str, str], **given: object) -> Settings:
    """A stored run's settings, for `resume`; values given now (a larger budget, say) win."""
    kept = {name: None if value == "None" else value for name, value in stored.items()}
    return resolve_settings(**{**kept, **{n: v for n, v in given.items() if v is not None}})
