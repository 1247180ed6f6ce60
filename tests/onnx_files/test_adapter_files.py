"""Alignment of the raw data in adapter files."""

import numpy as np
import pytest

from ortlearn.onnx_files.low_rank.files import adapter_bytes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_raw_data_are_aligned(dtype):
    rng = np.random.default_rng(0)
    arrays = {f"a{size}": rng.normal(size=(size, 3)).astype(dtype) for size in range(1, 12)}
    content = adapter_bytes(arrays)
    offsets = [content.find(array.tobytes()) for array in arrays.values()]
    assert min(offsets) > 0 and not any(offset % 8 for offset in offsets)
    assert all(name.encode() in content for name in arrays)
