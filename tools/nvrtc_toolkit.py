"""What this machine has to compile CUDA with: the NVRTC library, the architectures it knows, the header folders.

No GPU and no driver is needed. The library comes from wherever `cuda.pathfinder` finds it (the `nvidia-cuda-nvrtc`
package, then a toolkit). Headers: the `nvidia` packages beside it if they are complete, else a toolkit named by
CUDA_HOME or CUDA_PATH, else /usr/local/cuda. Complete means fp16, the crt folder and libcu++ of NVRTC's major version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memory.errors import BadInput, ToolMissing

_REQUIRED = ("cuda_fp16.h", "crt/host_defines.h", "cuda/std/cstdint")
_RUNTIME_VERSION = re.compile(r"#define\s+CUDART_VERSION\s+(\d+)")
_INSTALL = "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl cuda-bindings cuda-core"
_FIRST_ARCH_SPECIFIC = 90
_FIRST_FAMILY_SPECIFIC = 100


@dataclass(frozen=True)
class Headers:
    """Folders for `-I`, in order, and a digest that changes when any of them is upgraded."""

    dirs: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True)
class Toolkit:
    """The compiler of this machine."""

    version: tuple[int, int]
    archs: tuple[str, ...]
    headers: Headers

    def check_arch(self, arch: str) -> None:
        """Raises: BadInput when NVRTC cannot compile for `arch`, naming what it can."""
        if arch not in self.archs:
            raise BadInput(
                f"NVRTC {self.version[0]}.{self.version[1]} does not know architecture {arch!r}; "
                f"known: {', '.join(self.archs)}. Use one of these or install a newer nvidia-cuda-nvrtc"
            )


def find_toolkit(environ: Mapping[str, str] | None = None) -> Toolkit:
    """Load NVRTC and find its headers. `environ` defaults to the process' own.

    Raises: ToolMissing, with what to install, where the bindings, the library or the headers are absent.
    """
    try:
        from cuda.bindings import nvrtc
        from cuda.pathfinder import DynamicLibNotFoundError
    except ImportError as error:
        raise ToolMissing(f"the CUDA bindings cannot be imported ({error}); {_INSTALL}") from error
    try:
        status, major, minor = nvrtc.nvrtcVersion()
        archs_status, numbers = nvrtc.nvrtcGetSupportedArchs()
    except DynamicLibNotFoundError as error:
        raise ToolMissing(f"the NVRTC library was not found; {_INSTALL}") from error
    if int(status) or int(archs_status):
        raise ToolMissing(f"NVRTC does not start (status {status}); reinstall it: {_INSTALL}")
    headers = find_headers(int(major), os.environ if environ is None else environ)
    return Toolkit((int(major), int(minor)), _arch_names(numbers), headers)


def find_headers(cuda_major: int, environ: Mapping[str, str]) -> Headers:
    """The first complete header set of CUDA `cuda_major`. Raises: ToolMissing with the places looked at."""
    looked: list[str] = []
    for dirs in _candidates(environ):
        if not dirs or not dirs[0].is_dir():
            continue
        missing = [name for name in _REQUIRED if not any((d / name).is_file() for d in dirs)]
        major = _major_of(dirs)
        if not missing and major == cuda_major:
            return Headers(tuple(str(d) for d in dirs), _fingerprint(dirs))
        looked.append(f"{dirs[0]} (CUDA {major}, lacks {', '.join(missing) or 'nothing'})")
    seen = "; ".join(looked) or "no folder at all"
    raise ToolMissing(f"no complete CUDA {cuda_major} headers for NVRTC, found {seen}; {_INSTALL}")


def _arch_names(numbers: list[int]) -> tuple[str, ...]:
    names: list[str] = []
    for number in sorted(numbers):
        names.append(f"sm_{number}")
        if number >= _FIRST_ARCH_SPECIFIC:
            names.append(f"sm_{number}a")
        if number >= _FIRST_FAMILY_SPECIFIC:
            names.append(f"sm_{number}f")
    return tuple(names)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, ...]]:
    spec = importlib.util.find_spec("nvidia")
    for root in map(Path, (spec.submodule_search_locations or []) if spec else []):
        for include in sorted(root.glob("cu[0-9]*/include"), reverse=True):
            yield _with_cccl(include)
        # CUDA 12 wheels have one folder per package.
        yield tuple(p for p in (root / "cuda_runtime/include", root / "cuda_cccl/include") if p.is_dir())
    homes = [environ.get("CUDA_HOME"), environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for home in dict.fromkeys(h for h in homes if h):
        yield _with_cccl(Path(home) / "include")


def _with_cccl(include: Path) -> tuple[Path, ...]:
    return tuple(p for p in (include, include / "cccl") if p.is_dir())


def _major_of(dirs: tuple[Path, ...]) -> int | None:
    for folder in dirs:
        header = folder / "cuda_runtime_api.h"
        if header.is_file():
            match = _RUNTIME_VERSION.search(header.read_text(encoding="utf-8", errors="replace"))
            return int(match[1]) // 1000 if match else None
    return None


def _fingerprint(dirs: tuple[Path, ...]) -> str:
    """Names, sizes and times of the top-level headers and of CCCL's version file: an upgrade rewrites them all."""
    digest = hashlib.sha256()
    for folder in dirs:
        files = [p for p in folder.iterdir() if p.is_file()]
        files += [
            p for p in (folder / "cuda/std/__cccl/version.h", folder / "cub/version.cuh") if p.is_file()
        ]
        for path in sorted(files):
            stat = path.stat()
            digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return digest.hexdigest()
