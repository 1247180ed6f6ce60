"""Print the extra with the onnxruntime of this interpreter; runs alone, before anything is installed."""

import platform
import sys

#: Newest Python, and machines, with wheels of onnxruntime-training 1.19.2, by operating system.
NEWEST, MACHINES = (3, 12), {"linux": ("x86_64",), "darwin": ("arm64", "x86_64"), "win32": ("AMD64",)}


def extra_of(version, system=sys.platform, machine=None):
    """Return ``"training"`` where onnxruntime-training has wheels, otherwise ``"onnxruntime"``.

    Examples
    --------
    >>> extra_of((3, 12), "linux", "x86_64"), extra_of((3, 13), "linux", "x86_64")
    ('training', 'onnxruntime')
    """
    has_wheels = (machine or platform.machine()) in MACHINES.get(system, ())
    return "training" if has_wheels and tuple(version[:2]) <= NEWEST else "onnxruntime"


if __name__ == "__main__":
    print(extra_of(sys.version_info))
