"""Execution providers: names, options, plugins and the assignment of nodes."""

import itertools
import types

import numpy as np
import onnxruntime
import pytest
from onnx import parser
from sklearn.datasets import make_regression
from sklearn.linear_model import SGDRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import DeviceError
from ortlearn.runtime.devices import Device, parse_device
from ortlearn.runtime.placement import node_providers
from ortlearn.runtime.sessions import make_session
from ortlearn.trainable.explanation import explain

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { h = Exp (x) y = Neg (h) }'
)
OTHERS = [
    "TensorrtExecutionProvider",
    "DmlExecutionProvider",
    "CoreMLExecutionProvider",
    "CPUExecutionProvider",
]


@pytest.fixture
def samples():
    return make_regression(33, 3, random_state=0)


@pytest.fixture
def installed(monkeypatch):
    def install(names):
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(names))
        monkeypatch.setattr(onnxruntime, "get_ep_devices", list, raising=False)

    return install


@pytest.mark.parametrize(
    "name, provider",
    [
        ("directml", "DmlExecutionProvider"),
        ("coreml", "CoreMLExecutionProvider"),
        ("DmlExecutionProvider", "DmlExecutionProvider"),
    ],
)
def test_names(name, provider, installed):
    installed(OTHERS)
    device = parse_device((name, {"performance": 3, "flag": True}))
    assert device.is_cpu and not device.is_native
    assert device.providers() == [(provider, {"performance": "3", "flag": "True"}), "CPUExecutionProvider"]
    assert hash(device) == hash(parse_device((name, {"flag": True, "performance": 3})))
    assert parse_device(name).providers() == [provider, "CPUExecutionProvider"]


def test_index_of_a_device(installed):
    installed(OTHERS)
    assert parse_device("directml:1").providers()[0] == ("DmlExecutionProvider", {"device_id": "1"})


def test_tensorrt_falls_back_to_cuda(installed):
    installed(OTHERS)
    assert parse_device("tensorrt").providers() == ["TensorrtExecutionProvider", "CPUExecutionProvider"]
    installed([*OTHERS, "CUDAExecutionProvider"])
    assert parse_device("tensorrt").providers()[1:] == ["CUDAExecutionProvider", "CPUExecutionProvider"]


def test_options_of_cuda(installed):
    installed(["CUDAExecutionProvider", "CPUExecutionProvider"])
    device = parse_device(("CUDAExecutionProvider", {"device_id": 1, "do_copy_in_default_stream": 0}))
    assert (device.kind, device.index) == ("cuda", 1)
    assert device.providers()[0][1] == {"device_id": 1, "do_copy_in_default_stream": "0"}


def test_openvino_uses_single_precision_and_n_jobs(installed):
    installed(["OpenVINOExecutionProvider", "CPUExecutionProvider"])
    (_, options), _ = parse_device("openvino").providers(threads=3)
    assert '"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "3"' in options["load_config"]
    (_, options), _ = parse_device(("openvino", {"load_config": "{}"})).providers()
    assert options == {"load_config": "{}"}


@pytest.mark.parametrize("name", ["coreml", "NoExecutionProvider", ("openvino", {})])
def test_error_for_missing_providers_lists_the_available_ones(name, installed):
    installed(["DmlExecutionProvider", "CPUExecutionProvider"])
    with pytest.raises(DeviceError, match=r"is unknown.* has 'cpu', 'directml' here.*onnxruntime-ep-\*"):
        parse_device(name)


@pytest.mark.parametrize("name", [("cpu",), ("cpu", "x"), ["cpu", {}], ({}, "cpu"), ("cpu", {}, {})])
def test_invalid_pairs(name):
    with pytest.raises(DeviceError, match="is unknown. Use 'cpu'"):
        parse_device(name)


def test_options_reach_onnxruntime():
    device = parse_device(("CPUExecutionProvider", {"use_arena": 0}))
    assert device.is_native and device.kind == "cpu"
    assert make_session(MODEL, device).run(None, {"x": np.zeros((1, 2), np.float32)})[0].tolist() == [
        [-1, -1]
    ]
    with pytest.raises(ValueError, match=r"device=\('cuda', .*needs the CUDAExecutionProvider"):
        parse_device(("cuda", {"gpu_mem_limit": 1}))


def test_a_provider_that_cannot_start(installed):
    device = Device("cpu", 0, "CPUExecutionProvider")
    object.__setattr__(device, "provider", "DmlExecutionProvider")
    with (
        pytest.warns(UserWarning, match="DmlExecutionProvider"),
        pytest.raises(DeviceError, match="cannot start it"),
    ):
        make_session(MODEL, device)


class Registry:
    """The plugin functions of onnxruntime 1.24, and two plugin packages.

    Their names differ for each test, since a process registers a plugin once.
    """

    numbers = itertools.count()

    def __init__(self, monkeypatch, folder):
        self.paths, self.added = [], []
        self.broken, self.new = (f"onnxruntime_ep_{kind}_{next(self.numbers)}" for kind in ("broken", "new"))
        (folder / f"{self.broken}.py").write_text("import a_module_nobody_has")
        (folder / f"{self.new}.py").write_text("def get_library_path(): return 'lib.so'")
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
        monkeypatch.setattr(onnxruntime, "get_ep_devices", self.devices, raising=False)
        monkeypatch.setattr(onnxruntime, "register_execution_provider_library", self.register, raising=False)

    def register(self, name, path):
        self.paths.append((name, path))

    def devices(self):
        names = ["CPUExecutionProvider"] + ["NewExecutionProvider"] * (2 * bool(self.paths))
        return [types.SimpleNamespace(ep_name=name) for name in names]

    def has_providers(self):
        return bool(self.added)

    def add_provider_for_devices(self, devices, options):
        self.added.append((devices, options))


def test_plugins_are_registered_once_on_request(monkeypatch, tmp_path):
    registry = Registry(monkeypatch, tmp_path)
    assert parse_device("cpu").is_native and not registry.paths
    first, second = parse_device("new"), parse_device(("new:1", {"a": 1}))
    assert registry.paths == [(registry.new, "lib.so")]
    assert (first.provider, first.plugin, second.index) == ("NewExecutionProvider", True, 1)
    for _ in range(2):
        second.add_plugin(registry, 1)
    assert [(len(devices), options) for devices, options in registry.added] == [(1, {"a": "1"})]
    with pytest.raises(DeviceError, match="NewExecutionProvider has 2 device"):
        parse_device("new:2")


def test_error_names_broken_plugins(monkeypatch, tmp_path):
    broken = Registry(monkeypatch, tmp_path).broken
    with pytest.raises(DeviceError, match=rf"has 'cpu', 'new' here.*{broken} cannot be loaded: No module"):
        parse_device("nothing")


def test_plugins_need_a_later_onnxruntime(monkeypatch, tmp_path):
    new = Registry(monkeypatch, tmp_path).new
    monkeypatch.delattr(onnxruntime, "get_ep_devices")
    with pytest.raises(DeviceError, match=rf"The plugin {new} needs onnxruntime 1\.24 or later"):
        parse_device("new")


def test_node_providers(samples):
    trained = OrtGradientForwardBackwardOptimizer(SGDRegressor(), learning_rate="SGD", max_iter=1).fit(
        *samples
    )
    found = trained.get_node_providers()
    assert found.keys() == {"rate", "forward", "backward"}
    assert found["forward"].keys() == {"CPUExecutionProvider"}
    assert explain(trained).execution == ""


def test_node_providers_need_a_later_onnxruntime(monkeypatch):
    monkeypatch.setattr(onnxruntime, "InferenceSession", type("InferenceSession", (), {}))
    device = Device("cuda")
    with pytest.raises(DeviceError, match=r"Install 1\.24 or later"):
        node_providers(MODEL, device)


class Placed(OrtGradientOptimizer):
    """An estimator with nodes on two providers."""

    def get_node_providers(self):
        return {"epoch": {"NewExecutionProvider": {"Loop": 1, "Mul": 2}, "CPUExecutionProvider": {"Neg": 1}}}


def test_explain_shows_the_providers_of_nodes(samples):
    trained = Placed(SGDRegressor(), learning_rate="SGD").fit(*samples).set_params(device="new")
    line = "graph 'epoch' on device='new': 3 nodes on NewExecutionProvider, 1 nodes on CPUExecutionProvider"
    assert str(explain(trained)).endswith(line)
