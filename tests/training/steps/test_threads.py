"""Number of threads of a training."""

import math
import warnings

import numpy as np
import pytest
from onnx import parser
from sklearn.exceptions import ConvergenceWarning

from ortlearn.data.samples import Data
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.forward_backward_step import ForwardBackwardStep
from ortlearn.training.steps.threads import LARGE, largest_product, threads_of_training

#: Graphs for batches of 7 samples, and the operations of their largest product.
GRAPHS = {
    "MatMul": ("float[N,2] x, float[2,1] coef", "score = MatMul (x, coef)", 2 * 7 * 2),
    "Gemm": ("float[N,2] x, float[2,1] coef", "score = Gemm (x, coef)", 2 * 7 * 2),
    "transposed": (
        "float[N,2] x, float[2,3] coef",
        "t = Transpose <perm=[1,0]> (x) s = Gemm <transA=1> (t, coef) score = ReduceSum <keepdims=1> (s)",
        2 * 7 * 2 * 3,
    ),
    "largest of two": (
        "float[N,2] x, float[2,5] coef, float[5,1] w",
        "h = MatMul (x, coef) score = MatMul (h, w)",
        2 * 7 * 2 * 5,
    ),
    "Conv": (
        "float[N,2,6,6] x, float[4,2,3,3] coef",
        "c = Conv (x, coef) f = Flatten (c) score = ReduceMean <axes=[1]> (f)",
        2 * (7 * 4 * 4 * 4) * (2 * 3 * 3),
    ),
    "none": ("float[N,1] x, float[1,1] coef", "score = Mul (x, coef)", 0),
    "products inside": (
        "float[N,2] x, float[2,1] coef",
        'score = Einsum <equation="ij,jk->ik"> (x, coef)',
        math.inf,
    ),
    "other domain": (
        "float[N,2] x, float[2,1] coef",
        "score = com.microsoft.FusedMatMul (x, coef)",
        math.inf,
    ),
    "shape unknown": (
        "float[N,K] x, float[K,1] coef",
        "score = MatMul (x, coef)",
        math.inf,
    ),
}


@pytest.mark.parametrize("case", list(GRAPHS))
def test_largest_product(case, make_task):
    inputs, nodes, expected = GRAPHS[case]
    head = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
    model = parser.parse_model(f"{head} g ({inputs}) => (float[N,1] score) {{ {nodes} }}")
    dims = [d.dim_value or None for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert largest_product(make_task(model=model, features={"x": TensorType(1, tuple(dims))}), 7) == expected


def wide(make_task, columns):
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,{columns}] x, float[{columns},1] coef) => (float[N,1] score)
        {{ score = MatMul (x, coef) }}"""
    return make_task(model=parser.parse_model(text), features={"x": TensorType(1, (None, columns))})


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_several_threads_for_large_products_only(make_task, n_jobs):
    task, samples = wide(make_task, 64), LARGE // 128
    assert threads_of_training(task, samples, n_jobs) == n_jobs
    assert threads_of_training(task, samples - 1, n_jobs) in (None, 1)
    assert threads_of_training(task, "batch", n_jobs) == n_jobs  # of any size


SIZE = 1024


def large_data(columns):
    """Return samples for batches of ``SIZE``, the last one short."""
    X = np.random.default_rng(0).standard_normal((SIZE + 40, columns), dtype=np.float32)
    return Data(X, X[:, :1])


@pytest.mark.parametrize("step_class", [EpochStep, ForwardBackwardStep])
@pytest.mark.parametrize("columns, expected", [(LARGE // (2 * SIZE), 2), (LARGE // (2 * SIZE) - 1, 1)])
def test_sessions_of_a_training(step_class, make_task, columns, expected):
    step = step_class(wide(make_task, columns), Device("cpu"), n_jobs=2)
    start = {"coef": np.zeros((columns, 1), np.float32)}
    settings = LoopSettings(max_iter=1, batch_size=SIZE, exc=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run_training(step, large_data(columns), TrainingState(start), settings)
    if step_class is EpochStep:
        sessions = [step.session]
    else:
        sessions = step.plan.parts(SIZE)
    options = [session.get_session_options() for session in sessions]
    assert [item.intra_op_num_threads for item in options] == [expected] * len(sessions)
    spinning = "session.intra_op.allow_spinning"
    if (
        step_class is ForwardBackwardStep
    ):  # waiting threads of one session would occupy the cores of the other
        assert {item.get_session_config_entry(spinning) for item in options} == {"0"}


def test_threads_change_rounding_only(make_task):
    columns = LARGE // (2 * SIZE)
    data, start = large_data(columns), {"coef": np.zeros((columns, 1), np.float32)}
    task = wide(make_task, columns).changed(learning_rate=LearningRateSGD(eta0=1e-5))
    found = []
    for n_jobs in (1, 2):
        step = ForwardBackwardStep(task, Device("cpu"), n_jobs=n_jobs)
        settings = LoopSettings(max_iter=2, batch_size=SIZE)
        found.append(run_training(step, data, TrainingState(start), settings))
    np.testing.assert_allclose(found[0].weights["coef"], found[1].weights["coef"], rtol=1e-5, atol=1e-9)
