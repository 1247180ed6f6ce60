"""Random damage to training packages: bytes, members, types of files and links."""

import os
import shutil
from pathlib import Path

__all__ = ["BYTES", "KINDS", "damage"]


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
