"""All settings of a run in one frozen object: defaults < warpsmith.toml < environment (WARPSMITH_*) < command line."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from graph.model_settings import ModelSettings
from memory.errors import BadInput
from tools.devices.build import DeviceSpec, cuda_spec
from tools.devices.port import CompileMode
from tools.gpus import gpu_for_arch, gpu_named
from tools.machine import cuda_usable
from tools.policy import Policy

SETTINGS_FILE = "warpsmith.toml"
SECRETS = frozenset(("openai_api_key", "openai_base_url", "openai_api_base"))
"""Settings whose values are never printed: a key, and URLs, which may hold one."""


COMPILE_MODES: dict[str, tuple[CompileMode, ...]] = {
    "eager": (),
    "compile": ("default",),
    "best": ("default", "max-autotune-no-cudagraphs", "reduce-overhead"),
}
"""torch.compile's modes that each setting of `baselines` measures."""


class Settings(ModelSettings):
    """Resolved settings; stored with every run."""

    model_config = SettingsConfigDict(
        env_prefix="WARPSMITH_", toml_file=SETTINGS_FILE, extra="forbid", frozen=True
    )

    home: Path = Path("~/.warpsmith")
    """Where runs, the archive and compile caches live."""
    export_dir: Path = Path("warpsmith-out")
    """Where winners are exported."""
    device: Literal["auto", "simulator", "cuda"] = "auto"
    """Where programs run; `auto` takes a GPU where there is one, and the simulator elsewhere."""
    gpu_index: int = Field(default=0, ge=0)
    """Which of the machine's GPUs, on `cuda`."""
    baselines: Literal["eager", "compile", "best"] = "eager"
    """What to measure of PyTorch on `cuda`: eager, also torch.compile, also the best of its slow modes. A winner beats
    all that is measured."""
    gpu: str = "h200"
    """GPU that the simulator stands for: a name, or an architecture such as sm_90a."""
    workers: int = Field(default=0, ge=0, le=256)
    """Evaluations at once; 0 means one per core, at most 8, and on a cluster one per GPU, or core, that it has."""
    population: int = Field(default=8, ge=1, le=1000)
    """Candidates per generation, and survivors kept."""
    generations: int = Field(default=5, ge=1, le=10_000)
    islands: int = Field(default=0, ge=0, le=64)
    """Parts of the population that evolve apart; 0 means one for every 25 candidates, 8 at most."""
    migrate_every: int = Field(default=5, ge=1)
    """Generations between two visits of each island's fittest to the next island."""
    correctness_weight: float = Field(default=0.7, gt=0, le=1)
    """Of a candidate's fitness: how many stages it passed."""
    performance_weight: float = Field(default=0.3, gt=0, le=1)
    """Of a candidate's fitness: the share of the floor that it reached."""
    patience: int = Field(default=0, ge=0)
    """Generations in a row without a gain before the run stops; 0 means a fifth of `generations`, 2 at least."""
    floor_target: float | None = Field(default=0.95, gt=0, le=1)
    """Share of the floor that is near enough to stop; None goes on however near."""
    max_evaluations: int | None = Field(default=None, ge=1)
    """Candidates that a run judges at most; the generation that reaches it is finished."""
    fallback: Literal["pytorch", "best"] = "pytorch"
    """What results where a gentle generation fails as well: the module as it is, or the best of the last good one."""
    wall_s: float = Field(default=900.0, gt=0)
    """Wall seconds of searching, over all resumes; verification of the winner is not cut short."""
    device_budget_s: float | None = Field(default=None, gt=0)
    """Seconds of searching on the device, over all resumes: sanitizing, correctness and timing."""
    seed: int = 0
    relative_tolerance: float = Field(default=1e-6, gt=0)
    eager_factor: float = Field(default=2.0, ge=1)
    soak_trials: int | None = Field(default=None, ge=0)
    """Further random trials for a winner; None means 100 on the simulator and 1,000 on a GPU."""
    soak_s: float = Field(default=300.0, gt=0)
    """Wall seconds after which a winner's soak ends with the trials that it has passed."""
    deadline_s: float = Field(default=60.0, gt=0)
    capture_deadline_s: float = Field(default=120.0, gt=0)
    verify_elements: int = Field(default=1 << 20, ge=1024)
    """Trials that the user's module makes run at reduced shapes of at most this many elements. A GPU then draws trials
    at the problem's own shapes itself; a simulator runs one of those at the end."""
    examine: Literal["all", "simulator", "none"] = "all"
    """Closer looks at a winner on `cuda`: compute-sanitizer, Nsight Compute and the simulator, or fewer of them."""
    seeds: str = ""
    """Ids of innovations, separated by commas, that the first generation begins with, however unlike their problems."""
    archive_url: str | None = None
    """A Chroma server for the archive, `http(s)://host:port`; None keeps it under `home`."""
    pool: Literal["local", "ray"] = "local"
    """Where candidates are judged: by processes of this machine, or on the machines of a Ray cluster."""
    ray_address: str | None = None
    """The cluster's head node, `host:port`; None: the cluster that this machine belongs to, or its own."""
    ray_wait_s: float = Field(default=180.0, gt=0)
    """Seconds without any machine that can take work after which a run on a cluster ends; it can be resumed."""
    review: bool = False
    """Pause for a person's approval before a winner is archived and exported."""
    review_above: float = Field(default=1.0, ge=1)
    """Only for winners at least so many times as fast as eager PyTorch."""

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
    def archive_server(self) -> str | None:
        """`archive_url`. Raises BadInput where it is no URL of a server."""
        url = self.archive_url
        if url is not None and not (url.startswith(("http://", "https://")) and urlsplit(url).hostname):
            raise BadInput(
                f"archive URL {url!r} is not one such as http://10.0.0.1:8000, where `chroma run` serves"
            )
        return url

    @property
    def seed_ids(self) -> tuple[str, ...]:
        """Ids in `seeds`, each once."""
        return tuple(dict.fromkeys(word for word in re.split(r"[,\s]+", self.seeds) if word))

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
            soak_trials=self.soak_count,
            deadline_s=self.deadline_s,
        )

    @cached_property
    def device_spec(self) -> DeviceSpec:
        """The device of the run. Raises ToolMissing for `cuda` on a machine without a usable GPU."""
        if self.device == "cuda" or (self.device == "auto" and cuda_usable()):
            return cuda_spec(self.gpu_index)
        return DeviceSpec(kind="simulator", gpu=self.gpu_name, timeout_s=self.deadline_s / 2)

    @property
    def on_gpu(self) -> bool:
        """True where programs run on a real GPU."""
        return self.device_spec.kind == "cuda"

    @property
    def soak_count(self) -> int:
        """Random trials of a winner's soak."""
        if self.soak_trials is not None:
            return self.soak_trials
        return 1000 if self.on_gpu else 100

    @property
    def island_count(self) -> int:
        """Islands of the population."""
        return min(self.islands or max(1, min(8, self.population // 25)), self.population)

    @property
    def stop_after(self) -> int:
        """Generations in a row without a gain before the run stops."""
        return self.patience or max(2, self.generations // 5)

    @property
    def restart_after(self) -> int:
        """Generations without a gain before an island begins anew: twice in the time that stops the run."""
        return max(2, self.stop_after // 2)

    @property
    def compile_modes(self) -> tuple[CompileMode, ...]:
        """torch.compile's modes to measure on a GPU."""
        return COMPILE_MODES[self.baselines]

    def as_text(self) -> dict[str, str]:
        """Every setting as text, for the run's record."""
        return {name: str(value) for name, value in self.model_dump(mode="json").items()}


def resolve_settings(**given: object) -> Settings:
    """Settings with the command line's values; None means not given. Raises BadInput naming the setting."""
    try:
        settings = Settings.model_validate({name: v for name, v in given.items() if v is not None})
        _ = settings.gpu_name, settings.archive_server, settings.endpoint, settings.price_list
    except ValidationError as error:
        raise BadInput(_complaint(error)) from None  # pydantic's own words hold the values
    return settings


def _complaint(error: ValidationError) -> str:
    """What is wrong with the first setting; its value only where it cannot be a secret that stands in a wrong place."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, Settings.model_fields, 1)
        return f"there is no setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    what = first["msg"].lower()
    shown = not SECRETS & {str(part).lower() for part in first["loc"]}
    return f"setting {name!r} is {first['input']!r}: {what}" if shown else f"setting {name!r}: {what}"


def settings_from_run(stored: dict[str, str], **given: object) -> Settings:
    """A stored run's settings, for `resume`; values given now (a larger budget, say) win."""
    kept = {name: None if value == "None" else value for name, value in stored.items()}
    return resolve_settings(**{**kept, **{n: v for n, v in given.items() if v is not None}})


def uses_models(stored: dict[str, str]) -> bool:
    """True where language models are named in a run's stored settings."""
    return stored.get("models") not in (None, "", "None")
