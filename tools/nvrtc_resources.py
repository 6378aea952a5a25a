"""What a compiled kernel uses, from `ptxas -v` and from the cubin's own section table.

ptxas 13 no longer prints constant memory, so that figure comes from the ELF sections `.nv.constant*`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from tools.nvrtc_records import KernelResources

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_ELF_SECTION = struct.Struct("<IIQQQQIIQQ")


def parse_resources(log: str, cubin: bytes) -> dict[str, KernelResources]:
    """Resources of each kernel in the log, by name. Device functions that were not inlined are left out."""
    constants = constant_bytes(cubin)
    shared_constants = constants.get("", 0)
    found: dict[str, KernelResources] = {}
    entry, subject = "", ""
    frame = (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, subject, frame = match["name"], match["name"], (0, 0, 0)
        elif match := _PROPERTIES.search(line):
            subject = match["name"]
        elif subject == entry and (match := _FRAME.search(line)):
            frame = (int(match[1]), int(match[2]), int(match[3]))
        elif entry and entry not in found and (match := _USED.search(line)):
            shared = _SHARED.search(line)
            found[entry] = KernelResources(
                entry=entry,
                registers=int(match["registers"]),
                static_shared_bytes=int(shared[1]) if shared else 0,
                spill_store_bytes=frame[1],
                spill_load_bytes=frame[2],
                stack_bytes=frame[0],
                constant_bytes=constants.get(entry, 0) + shared_constants,
            )
    return found


def constant_bytes(cubin: bytes) -> Mapping[str, int]:
    """Bytes of each kernel's constant banks; the module's own, which belong to no kernel, under the empty name."""
    sizes: dict[str, int] = {}
    for name, size in _sections(cubin):
        if name.startswith(".nv.constant"):
            owner = name[len(".nv.constant") :].partition(".")[2]
            sizes[owner] = sizes.get(owner, 0) + size
    return sizes


def _sections(cubin: bytes) -> list[tuple[str, int]]:
    """(name, size) of an ELF64 file's sections; empty for anything that is not one."""
    if len(cubin) < _ELF_HEADER.size or cubin[:5] != b"\x7fELF\x02":
        return []
    header = _ELF_HEADER.unpack_from(cubin)
    offset, entry_size, count, names_index = header[6], header[11], header[12], header[13]
    if entry_size != _ELF_SECTION.size or offset + count * entry_size > len(cubin) or names_index >= count:
        return []
    rows = [_ELF_SECTION.unpack_from(cubin, offset + i * entry_size) for i in range(count)]
    names = cubin[rows[names_index][4] : rows[names_index][4] + rows[names_index][5]]
    return [(names[row[0] : names.find(b"\0", row[0])].decode("ascii", "replace"), row[5]) for row in rows]
