"""Write adapter files of onnxruntime (``.onnx_adapter``), which store named arrays as a flatbuffer."""

from collections.abc import Mapping

import flatbuffers
import numpy as np
from onnx import helper

#: Identifier and version of the format, ``onnxruntime/lora/adapter_format`` of onnxruntime 1.20 to 1.31. The
#: versions of the adapter and of its model, which onnxruntime ignores, are the same number.
IDENTIFIER, VERSION = b"TORT", 1
#: Slots of the fields of a parameter, and of an adapter: three versions and the parameters.
NAME, DIMS, DATA_TYPE, RAW_DATA = range(4)
FORMAT, ADAPTER, MODEL, PARAMETERS = range(4)
ALIGNMENT = 8  # of raw data, in bytes


def adapter_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return an adapter file for ``LoraAdapter.Load`` of onnxruntime 1.20 and later, by input name."""
    builder = flatbuffers.Builder(1024)
    parameters = [_parameter(builder, name, array) for name, array in sorted(arrays.items())]
    builder.StartVector(4, len(parameters), 4)
    for parameter in reversed(parameters):
        builder.PrependUOffsetTRelative(parameter)
    vector = builder.EndVector()
    builder.StartObject(4)
    for slot in (FORMAT, ADAPTER, MODEL):
        builder.PrependInt32Slot(slot, VERSION, 0)
    builder.PrependUOffsetTRelativeSlot(PARAMETERS, vector, 0)
    builder.Finish(builder.EndObject(), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _parameter(builder: flatbuffers.Builder, name: str, array: np.ndarray) -> int:
    """Write a named array and return its offset."""
    raw = np.ascontiguousarray(array).tobytes()
    builder.Prep(ALIGNMENT, len(raw))
    data = builder.CreateByteVector(raw)
    dims = builder.CreateNumpyVector(np.array(array.shape, dtype=np.int64))
    text = builder.CreateString(name)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(NAME, text, 0)
    builder.PrependUOffsetTRelativeSlot(DIMS, dims, 0)
    builder.PrependInt32Slot(DATA_TYPE, helper.np_dtype_to_tensor_dtype(array.dtype), 0)
    builder.PrependUOffsetTRelativeSlot(RAW_DATA, data, 0)
    return builder.EndObject()
