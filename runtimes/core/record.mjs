// Compares a training with the record of its package, by which every port checks itself.

import { readTensors } from "./trainer.mjs";

// The largest |found - expected| over the largest |expected|.
function difference(found, expected) {
  let wrong = 0, scale = 0;
  for (let i = 0; i < expected.length; i++) {
    wrong = Math.max(wrong, Math.abs(Number(found[i]) - Number(expected[i])));
    scale = Math.max(scale, Math.abs(Number(expected[i])));
  }
  return wrong / (scale || 1);
}

// Trains as the record says, and returns the differences of objectives, weights and states, and predictions.
export async function checkRecord(ort, trainer, bytes) {
  const { record, carried } = trainer.manifest;
  if (record === null) throw new Error("The package has no record: export it with example=(X, y).");
  const { tensors } = readTensors(ort, bytes);
  const columns = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    if (name.startsWith("column ")) columns[name.slice(7)] = tensor;
  }
  const objectives = [];
  for (let i = 0; i < record.epochs; i++) objectives.push(...(await trainer.trainEpoch(columns, tensors[`order ${i}`].data)));
  const weights = carried.map(({ name }) => difference(trainer.values[name].data, tensors[`result ${name}`].data));
  const predicted = await trainer.run("infer", { ...columns, ...trainer.values });
  const predictions = record.predicted.map((kind) => difference(predicted[kind].data, tensors[`predicted ${kind}`].data));
  return {
    objectives: difference(objectives, record.objectives),
    weights: Math.max(...weights),
    predictions: Math.max(0, ...predictions),
  };
}
