// Trains a package of ortlearn on any ONNX Runtime for JavaScript: `ort` is its module.

import { allFinite, checkFile, checkValues, fail, readManifest, readTensors, writeTensors } from "./files.mjs";
import { asRows, asTensor, checkOptions, checkRows, checkWeights, text } from "./samples.mjs";

export { readTensors };

const GRAPHS = ["step", "epoch", "evaluate", "infer"];
const size = (shape) => shape.reduce((product, n) => product * n, 1);

// A random order of the numbers 0 to n - 1, by Fisher and Yates.
export function shuffled(n, random = Math.random) {
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

export class Trainer {
  // `read(name)` returns the bytes of a file of the package, `open(bytes)` a session.
  static async of(ort, read, open) {
    const trainer = new this(), manifest = readManifest(await read("training.json"));
    Object.assign(trainer, { ort, manifest, files: {}, values: {}, sessions: {} });
    for (const name of manifest.tensors) {
      const bytes = await read(name);
      trainer.files[name] = readTensors(ort, bytes, name, manifest.format > 1);
      Object.assign(trainer.values, trainer.files[name].tensors);
    }
    checkValues(trainer.values, manifest.carried);
    for (const name of GRAPHS) {
      const bytes = await read(`${name}.onnx`);
      checkFile(manifest, `${name}.onnx`, bytes);
      try {
        trainer.sessions[name] = await open(bytes);
      } catch (error) {
        fail(`${name}.onnx cannot be opened: ${error.message}`);
      }
    }
    return trainer;
  }

  get epoch() { return Number(this.values.ortlearn_epoch.data[0]); }

  // Runs a graph, and returns its outputs by name: tensors.
  async run(graph, feeds, outputs = []) {
    if (!GRAPHS.includes(graph)) fail(`The graph ${text(graph)} is unknown; graphs are ${GRAPHS.join(", ")}.`);
    const session = this.sessions[graph], other = outputs.filter((name) => !session.outputNames.includes(name));
    if (other.length) fail(`${graph}.onnx does not match the manifest in ${other}: copy the package again.`);
    const lacking = session.inputNames.filter((name) => Object(feeds)[name] === undefined);
    if (lacking.length) {
      fail(`${graph} needs a tensor for each input, and ${lacking.join(", ")} is missing: pass tensors by name, such as { ...trainer.columns(X), ...trainer.values }.`);
    }
    try {
      return await session.run(Object.fromEntries(session.inputNames.map((name) => [name, feeds[name]])));
    } catch (error) {
      return fail(`${graph}.onnx cannot be run on this input: ${error.message}`);
    }
  }

  // Samples, labels and weights by input; X are samples, or samples by input if there are several.
  columns(X, y, sampleWeight) {
    const { features, label = null, sample_weight: weight = null } = this.manifest;
    const single = features.length === 1 && (typeof X !== "object" || X === null || Array.isArray(X) || ArrayBuffer.isView(X));
    const rows = single ? { [features[0].name]: X } : X;
    const lacking = features.map(({ name }) => name).filter((name) => !Object.hasOwn(Object(rows), name));
    if (lacking.length) fail(`X must be an object of samples by input, and lacks ${text(lacking)}.`);
    const found = Object.fromEntries(features.map((item) => [item.name, asTensor(this.ort, item.name, item, rows[item.name])]));
    const n = Object.values(found)[0].dims[0], isTraining = y !== undefined && y !== null;
    if (isTraining && label !== null) found[label.name] = this.labels(y, label);
    if (weight === null && sampleWeight !== undefined && sampleWeight !== null) {
      fail("The package takes no weights of samples: export it with weighted=True.");
    }
    if (isTraining && weight !== null) {
      const ones = new Float64Array(n * size(weight.shape.slice(1))).fill(1);
      found[weight.name] = asTensor(this.ort, "sample_weight", weight, sampleWeight ?? ones);
      checkWeights(found[weight.name].data);
    }
    const counts = Object.entries(found).map(([name, { dims }]) => `${name}: ${dims[0]}`);
    if (Object.values(found).some(({ dims }) => dims[0] !== n)) fail(`Inputs must have equal numbers of samples, but have ${counts.join(", ")}.`);
    return found;
  }

  // Labels, or the numbers of their classes, as a tensor.
  labels(y, label) {
    if (label.classes) {
      checkRows("y", y);
      const numbers = new Map(label.classes.map((name, number) => [name, number]));
      const names = Array.from(y, (name) => (typeof name === "bigint" ? Number(name) : name));
      const unknown = names.findIndex((name) => !numbers.has(name));
      if (unknown >= 0) fail(`y has ${text(names[unknown])}, the classes are ${text(label.classes)}.`);
      y = names.map((name) => numbers.get(name));
      if (label.encoding === "one_hot") y = y.map((number) => label.classes.map((_, i) => Number(i === number)));
    }
    const found = asTensor(this.ort, "y", label, y);
    if (!label.classes && found.type !== "string" && !allFinite(found)) fail("y must be finite.");
    return found;
  }

  // Columns of a training, which needs labels.
  allColumns(X, y, sampleWeight) {
    if ((y === undefined || y === null) && this.manifest.label) fail("y is missing: the package trains on labels.");
    return this.columns(X, y ?? [], sampleWeight);
  }

  // Trains on all samples in an order, and returns the objective of each batch.
  async trainEpoch(columns, order) {
    const { batch_size, schedule: { rates }, carried, dtype } = this.manifest;
    const n = Object.values(columns)[0].dims[0];
    const rows = asTensor(this.ort, "order", { type: "int64", shape: [null] }, order).data;
    if (rows.some((row) => row < 0n || row >= n)) fail(`order must have numbers of samples, from 0 to ${n - 1}.`);
    const rate = asTensor(this.ort, "rate", { type: dtype, shape: [1] }, [rates[Math.min(this.epoch, rates.length - 1)]]).reshape([]);
    const full = Math.floor(rows.length / batch_size) * batch_size;
    const parts = [["epoch", rows.slice(0, full), [full / batch_size, batch_size]], ["step", rows.slice(full), [rows.length - full]]];
    let values = this.values, objectives = [];
    for (const [graph, numbers, shape] of parts.filter(([, numbers]) => numbers.length)) {
      const names = this.manifest[graph];
      const feeds = { ...columns, [names.rate]: rate, [names.rows]: new this.ort.Tensor("int64", numbers, shape) };
      for (const item of carried) feeds[item[graph].input] = values[item.name];
      const found = await this.run(graph, feeds, [names.objective, ...carried.map((item) => item[graph].output)]);
      objectives.push(...found[names.objective].data);
      values = Object.fromEntries(carried.map((item) => [item.name, found[item[graph].output]]));
    }
    if (!objectives.every(Number.isFinite) || !Object.values(values).every(allFinite)) {
      fail("The loss is not finite: lower the learning rate, or scale the features.");
    }
    const next = new this.ort.Tensor("int64", BigInt64Array.of(BigInt(this.epoch + 1)), []);
    this.values = { ...values, ortlearn_epoch: next };
    return objectives;
  }

  async fit(X, y, options = {}) {
    checkOptions(options, ["epochs", "onEpoch", "random", "sampleWeight"]);
    const { epochs = 1, onEpoch = () => {}, random = Math.random, sampleWeight } = options ?? {};
    const columns = this.allColumns(X, y, sampleWeight);
    if (!Number.isInteger(epochs) || epochs < 1) fail(`epochs must be a whole number of 1 or more, and is ${text(epochs)}.`);
    if (typeof onEpoch !== "function" || typeof random !== "function") fail("onEpoch and random must be functions.");
    const n = Object.values(columns)[0].dims[0];
    for (let i = 0; i < epochs; i++) {
      const objectives = await this.trainEpoch(columns, shuffled(n, random));
      await onEpoch({ epoch: this.epoch, objective: objectives.reduce((a, b) => a + b, 0) / objectives.length });
    }
    return this;
  }

  // The mean loss without penalty, and the score: accuracy, or R2.
  async evaluate(X, y, sampleWeight) {
    const { loss, score = null } = this.manifest.evaluate, outputs = score === null ? [loss] : [loss, score];
    const found = await this.run("evaluate", { ...this.allColumns(X, y, sampleWeight), ...this.values }, outputs);
    return { loss: found[loss].data[0], score: score === null ? null : found[score].data[0] };
  }

  // The outputs of the model by name, such as label and probabilities: arrays of samples.
  async predict(X) {
    const found = await this.run("infer", { ...this.columns(X), ...this.values });
    return Object.fromEntries(Object.entries(found).map(([name, tensor]) => [name, asRows(tensor)]));
  }

  // The bytes of the files that training changes.
  changed() {
    const isChecked = this.manifest.format > 1;
    return Object.fromEntries(Object.entries(this.files).map(([name, file]) => [name, writeTensors(file, this.values, isChecked)]));
  }
}
