"""Calls on bound tensors: values are read at each call, results are written in place or allocated."""

import gc
import weakref

import numpy as np
import pytest
from onnx import parser

from ortlearn.runtime.calls import BoundCall
from ortlearn.runtime.devices import Device, ort_value
from ortlearn.runtime.sessions import make_session

CPU = Device("cpu")
MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N] x, float[1] w) => (float[N] y, float[1] z) { y = Mul (x, w) z = Neg (w) }""")


class Other(Device):
    """The CPU, treated as another provider."""

    is_native = False


class CopyingSession:
    """A session of a provider that copies inputs when they are bound."""

    def __init__(self, session, copies_inputs):
        self.copies_inputs, self._session, self._sess = copies_inputs, session, self
        self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs

    def io_binding(self):
        self._binding, self._iobinding = self._session.io_binding()._iobinding, self
        self.bind_output = self._binding.bind_output
        self.bind_ortvalue_output = self._binding.bind_ortvalue_output
        return self

    def bind_ortvalue_input(self, name, value):
        self._kept = [*getattr(self, "_kept", []), np.array(value.numpy())]
        self._binding.bind_ortvalue_input(name, ort_value(self._kept[-1], CPU)._ortvalue)

    def run_with_iobinding(self, binding, options):
        self._session._sess.run_with_iobinding(binding._binding, options)


def tensors(**arrays):
    arrays = {name: np.array(values, np.float32) for name, values in arrays.items()}
    return arrays, {name: ort_value(array, CPU) for name, array in arrays.items()}


@pytest.mark.parametrize("device", [CPU, Other("cpu")], ids=["cpu", "other"])
def test_values_of_each_call(device):
    arrays, values = tensors(x=[1, 2], w=[3], y=[0, 0], z=[0], unknown=[7])
    call = BoundCall(make_session(MODEL, device), values)
    for run in (call, call.function):
        for factor in (3.0, 5.0):
            arrays["w"][0] = factor
            run()
            assert arrays["y"].tolist() == [factor, 2 * factor] and arrays["z"].tolist() == [-factor]
    assert call.new_outputs() == {}


@pytest.mark.parametrize("copies, expected", [(True, -5.0), (False, -3.0)])
def test_inputs_that_a_provider_copies(copies, expected):
    session = make_session(MODEL, CPU)
    assert not session.copies_inputs and make_session(MODEL, Other("cpu")).copies_inputs
    arrays, values = tensors(x=[1, 2], w=[3], y=[0, 0], z=[0])
    call = BoundCall(CopyingSession(session, copies), values)
    arrays["w"][0] = 5.0
    call.function()
    assert arrays["z"].tolist() == [expected]


def test_other_inputs_and_allocated_outputs():
    arrays, values = tensors(x=[1, 2], w=[3], z=[0])
    call = BoundCall(make_session(MODEL, CPU), values)
    for x in ([1.0, 2.0], [4.0, 5.0, 6.0], []):  # the lengths differ
        call.bind(tensors(x=x, unknown=[0])[1])
        call.function()
        assert list(call.new_outputs()) == ["y"]
        assert call.new_outputs()["y"].numpy().tolist() == [3 * value for value in x]
        assert arrays["z"].tolist() == [-3.0]


def test_results_replace_values():
    arrays, values = tensors(x=[1, 2], w=[3], y=[0, 0], z=[0])
    own, results = tensors(y=[0, 0])
    BoundCall(make_session(MODEL, CPU), values, results)()
    assert own["y"].tolist() == [3.0, 6.0] and arrays["y"].tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [lambda call: call, lambda call: call.function], ids=["call", "function"])
def test_memory_of_tensors_is_kept_and_released(kept):
    arrays, values = tensors(x=[1, 2], w=[3], y=[0, 0], z=[0])
    call, alive = kept(BoundCall(make_session(MODEL, CPU), values)), weakref.ref(arrays["x"])
    result = arrays["y"]
    del arrays, values
    gc.collect()
    assert alive() is not None
    call()
    assert result.tolist() == [3.0, 6.0]
    gc.disable()
    try:
        del call  # no cycle
        assert alive() is None
    finally:
        gc.enable()
