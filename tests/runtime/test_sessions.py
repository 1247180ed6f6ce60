"""Devices, sessions and tensors."""

import subprocess
import sys

import joblib
import numpy as np
import onnxruntime
import pytest
from onnx import parser

from ortlearn.exceptions import DeviceError
from ortlearn.runtime.devices import Device, ort_device, ort_value, ort_vector, parse_device
from ortlearn.runtime.sessions import make_session, n_threads, session_options

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { y = Neg (x) }'
)


def test_cpu():
    assert parse_device("cpu") == parse_device("cpu:0") == Device("cpu", 0)
    assert parse_device("cpu").is_cpu and parse_device("cpu").providers() == ["CPUExecutionProvider"]


def test_providers_of_a_gpu():
    (provider, options), fallback = Device("cuda", 1).providers()
    assert (provider, options, fallback) == (
        "CUDAExecutionProvider",
        {"device_id": 1},
        "CPUExecutionProvider",
    )
    assert not Device("cuda").is_cpu


@pytest.mark.parametrize("name", ["", "gpu", "CPU", "cpu:1", "cuda:", "cuda:-1", "cuda:a", " cpu", None, 0])
def test_unknown_devices(name):
    with pytest.raises(DeviceError, match="is unknown. Use 'cpu', 'cuda' or 'cuda:1'"):
        parse_device(name)


def test_missing_provider(monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(DeviceError, match=r"needs the CUDAExecutionProvider.*ortlearn\[training-gpu\]"):
        parse_device("cuda:1")


@pytest.mark.parametrize("n_jobs, threads", [(None, 1), (1, 1), (2, 2), (-1, joblib.cpu_count())])
def test_threads(n_jobs, threads):
    assert session_options(n_jobs).intra_op_num_threads == threads


def test_session_runs_on_its_device():
    session = make_session(MODEL, Device("cpu"), n_jobs=2)
    assert session.get_providers() == ["CPUExecutionProvider"]
    X = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], -X)


def test_tensors_share_the_memory_of_arrays():
    array = np.zeros((2, 3), np.float32)
    value = ort_value(array, Device("cpu"))
    array[0, 0] = 7
    assert value.numpy()[0, 0] == 7


def test_vector_of_arrays_and_values():
    array = np.arange(6, dtype=np.float64).reshape(2, 3)
    public = onnxruntime.OrtValue.ortvalue_from_numpy(array)
    vector = ort_vector([array.T, public, public._ortvalue], [ort_device(Device("cpu"))] * 3)
    for value, expected in zip(vector, [array.T, array, array], strict=True):
        np.testing.assert_array_equal(value.numpy(), expected)
    assert ort_vector(vector, []) is vector


def test_vector_owns_the_copy_of_an_array_that_is_not_contiguous():
    vector = ort_vector([np.arange(600.0).reshape(300, 2).T], [ort_device(Device("cpu"))])
    others = [np.full((2, 300), 9.0) for _ in range(50)]  # would take the memory of a copy that nothing holds
    np.testing.assert_array_equal(vector[0].numpy(), np.arange(600.0).reshape(300, 2).T)
    assert len(others) == 50


@pytest.mark.slow
def test_error_without_onnxruntime_names_the_extras():
    code = """
import sys
sys.modules["onnxruntime"] = None
import ortlearn
from ortlearn.training import parse_device
try:
    parse_device("cuda")
except ortlearn.exceptions.MissingRuntimeError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'ortlearn[onnxruntime]'" in result.stdout


def _threads_of_a_worker(n_jobs):
    spinning = session_options(n_jobs).get_session_config_entry("session.intra_op.allow_spinning")
    return n_threads(n_jobs), spinning


@pytest.mark.slow
def test_workers_share_the_cores_and_do_not_spin():
    assert (n_threads(None), n_threads(1), n_threads(-1)) == (1, 1, joblib.cpu_count())
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(_threads_of_a_worker)(-1) for _ in range(2))
    assert {threads for threads, _ in found} == {max(joblib.cpu_count() // 2, 1)}
    assert {spinning for _, spinning in found} == {"0"}


def test_sum_with_a_product_of_the_last_part_of_a_split():
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]> g (float[6,2] x, float[2,2] z) => (float[2,2] y)
        { a, b, c = Split <axis = 0, num_outputs = 3> (x)  p = Gemm (c, z)  y = Sum (p, z) }""")
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    z = np.array([[1, 2], [3, 5]], dtype=np.float32)
    found = make_session(model, Device("cpu")).run(None, {"x": x, "z": z})[0]
    np.testing.assert_array_equal(found, x[4:] @ z + z)
