// Milliseconds of an epoch on the samples of the record, repeated: the median of some.

import { readTensors } from "./trainer.mjs";

export async function epochTime(ort, trainer, bytes, repetitions = 20) {
  const { tensors } = readTensors(ort, bytes);
  const columns = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    if (name.startsWith("column ")) columns[name.slice(7)] = tensor;
  }
  const order = tensors["order 0"].data, times = [];
  for (let i = 0; i < repetitions; i++) {
    const begun = performance.now();
    await trainer.trainEpoch(columns, order);
    times.push(performance.now() - begun);
  }
  return times.sort((a, b) => a - b)[Math.floor(repetitions / 2)];
}
