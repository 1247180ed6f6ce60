"""Copies of weights, and buffers of batches."""

import numpy as np

from ortlearn.runtime.buffers import BatchBuffer, Carried, CarriedBuffers
from ortlearn.runtime.devices import Device

CPU = Device("cpu")


def test_batch_buffer_takes_samples():
    array = np.arange(12, dtype=np.float32).reshape(6, 2)
    buffer = BatchBuffer(array, 3, CPU)
    for rows in ([0, 2, 5], [1, 1, 4]):
        buffer.load(array, np.array(rows))
        np.testing.assert_array_equal(buffer.value.numpy(), array[rows])


def test_step_back_returns_to_earlier_copies():
    carried = [Carried("w", None, "w", "new_w"), Carried("w", "mean", "w_mean", "new_mean")]
    start = {("w", None): np.zeros(2, np.float32), ("w", "mean"): np.ones(2, np.float32)}
    buffers = CarriedBuffers(carried, start, CPU)
    buffers.step_back(2)
    assert buffers.read()["w", None].tolist() == [0, 0]
    for step in range(1, 6):
        buffers.values[buffers.next][0].update_inplace(np.full(2, step, np.float32))
        buffers.advance()
        assert buffers.read()["w", None].tolist() == [step, step]
    buffers.step_back(1)
    assert buffers.read()["w", None].tolist() == [4, 4]
    buffers.step_back(1)
    assert buffers.read()["w", None].tolist() == [3, 3]
    assert start["w", None].tolist() == [0, 0]


def test_step_back_after_one_step():
    buffers = CarriedBuffers([Carried("w", None, "w", "v")], {("w", None): np.array([7.0])}, CPU)
    buffers.advance()
    buffers.step_back(2)
    assert buffers.read()["w", None].tolist() == [7.0] and buffers.steps == 0
