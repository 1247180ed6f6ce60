"""Random damage to training packages, and forged values and manifests with right checksums."""

import json
import os
import shutil
from pathlib import Path

import numpy as np

from ortlearn.saving.package_files import sealed
from ortlearn.saving.tensors import pack_tensors, unpack_tensors

__all__ = ["BYTES", "FORGED_MANIFESTS", "FORGED_VALUES", "KINDS", "damage", "replace_value", "reseal"]


def _flipped(content, draw):
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def _zeroed(content, draw):
    place = draw.randrange(len(content))
    content[place : place + 512] = bytes(len(content[place : place + 512]))


def _cut(content, draw):
    del content[draw.randrange(len(content)) :]


def _repeated(content, draw):
    content += content[draw.randrange(len(content)) :]


def _removed(content, draw):
    place = draw.randrange(len(content))
    del content[place : place + draw.choice([1, 8, 100])]


def _inserted(content, draw):
    place = draw.randrange(len(content))
    content[place:place] = draw.randbytes(draw.choice([1, 8, 100]))


def _replaced(content, draw):
    content[:] = draw.choice([b"", b"{}", b"[]", b"null", b"[" * 10**5, b"\xff" * 100, draw.randbytes(1000)])


def _nested(content, draw):
    """Write a safetensors file whose header is nested deeply."""
    header = b'{"a":' * 10**5
    content[:] = len(header).to_bytes(8, "little") + header


#: Changes of the content of a file.
BYTES = (_flipped, _zeroed, _cut, _repeated, _removed, _inserted, _replaced, _nested)


def _missing(path, others, draw):
    path.unlink()


def _folder(path, others, draw):
    path.unlink()
    path.mkdir()


def _pipe(path, others, draw):
    path.unlink()
    os.mkfifo(path)


def _device(path, others, draw):
    path.unlink()
    path.symlink_to(draw.choice(["/dev/zero", "/dev/urandom", "/dev/null"]))


def _loop(path, others, draw):
    path.unlink()
    path.symlink_to(path)


def _dangling(path, others, draw):
    path.unlink()
    path.symlink_to(path.parent / "nothing")


def _to_folder(path, others, draw):
    path.unlink()
    path.symlink_to("/proc")


def _other_member(path, others, draw):
    shutil.copy(draw.choice(others), path)


def _link_to_other_member(path, others, draw):
    path.unlink()
    path.symlink_to(draw.choice(others))


def _exchanged(path, others, draw):
    other = draw.choice(others)
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)


def _huge(path, others, draw):
    """Extend a file to a terabyte without content."""
    os.truncate(path, 2**40)


#: Changes of a file of a folder.
MEMBERS = (_missing, _folder, _pipe, _device, _loop, _dangling, _to_folder, _other_member, _huge)
MEMBERS += (_link_to_other_member, _exchanged)
KINDS = (*BYTES, *MEMBERS)


def damage(folder: Path, draw, names, kind=None):
    """Damage a file of a package, and return a description."""
    path = folder / draw.choice(names)
    kind = draw.choice(KINDS) if kind is None else kind
    if kind in BYTES:
        content = bytearray(path.read_bytes())
        kind(content, draw)
        path.write_bytes(content)
    else:
        kind(path, sorted(other for other in folder.iterdir() if other != path), draw)
    return f"{path.name} {kind.__name__}"


def reseal(folder, change, name="training.json"):
    """Change a manifest or values, and write the right checksum; format 1 has none."""
    path = folder / name
    if name == "training.json":
        content = json.loads(path.read_text())
        change(content)
        new = json.dumps(content, indent=1).encode()
    else:
        values, metadata = unpack_tensors(path.read_bytes())
        change(values)
        new = pack_tensors(values, metadata)
    path.write_bytes(sealed(new) if b"ortlearn_crc32" in new else new)
    return folder


def state(values, text):
    return next(name for name in values if text in name)


def put(values, name, value):
    values[name] = np.full_like(values[name], value)


FORGED_VALUES = {
    "NaN weight": lambda v: put(v, "I0_coef", np.nan),
    "infinite weight": lambda v: put(v, "I0_coef", np.inf),
    "NaN state": lambda v: put(v, state(v, "mean"), np.nan),
    "negative square": lambda v: put(v, state(v, "square"), -1.0),
    "negative power": lambda v: put(v, state(v, "power_2"), -0.5),
    "missing state": lambda v: v.pop(state(v, "square")),
    "missing weight": lambda v: v.pop("I0_coef"),
    "missing epoch": lambda v: v.pop("ortlearn_epoch"),
    "renamed state": lambda v: v.update(other=v.pop(state(v, "mean"))),
    "renamed weight": lambda v: v.update(other=v.pop("I0_coef")),
    "additional": lambda v: v.update(other=np.zeros(3)),
    "misshaped state": lambda v: v.update({state(v, "mean"): np.zeros(7, dtype=np.float32)}),
    "misshaped weight": lambda v: v.update(I0_coef=np.zeros((1, 3), dtype=np.float32)),
    "type of a weight": lambda v: v.update(I0_coef=v["I0_coef"].astype(np.float64)),
    "negative epoch": lambda v: put(v, "ortlearn_epoch", -1),
    "type of the epoch": lambda v: v.update(ortlearn_epoch=np.array(1.0)),
    "no tensors": lambda v: v.clear(),
}


def drop(manifest, key):
    del manifest[key]


FORGED_MANIFESTS = {
    "no carried names": lambda m: m.update(carried=[]),
    "a name twice": lambda m: m["carried"].append(m["carried"][0]),
    "a name missing": lambda m: m["carried"].pop(),
    "a state as a weight": lambda m: next(i for i in m["carried"] if i["state"]).update(state=None),
    "a shape": lambda m: m["carried"][0].update(shape=[9]),
    "a negative shape": lambda m: m["carried"][0].update(shape=[-1]),
    "a type": lambda m: m["carried"][0].update(type="complex64"),
    "no rates": lambda m: m["schedule"].update(rates=[]),
    "no files": lambda m: drop(m, "files"),
    "other tensors": lambda m: m.update(tensors=["weights.safetensors"]),
    "tensors elsewhere": lambda m: m.update(tensors=["../values.safetensors"]),
    "no tensors": lambda m: m.update(tensors=[]),
    "batch size": lambda m: m.update(batch_size=0),
    "format": lambda m: m.update(format=99),
    "format as text": lambda m: m.update(format="2"),
    "no format": lambda m: drop(m, "format"),
}


def replace_value(content, draw):
    """Replace a value anywhere in a manifest."""
    owners = [content]
    for owner in owners:
        inside = owner.values() if isinstance(owner, dict) else owner
        owners += [item for item in inside if isinstance(item, dict | list) and item]
    owner = draw.choice(owners)
    place = draw.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
    owner[place] = draw.choice([None, 0, -1, 2**70, 1.5, "", "X", [], [None], {}, True, ["X"]])
