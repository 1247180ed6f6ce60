// Trains a package of ortlearn on any ONNX Runtime for JavaScript: `ort` is its module.

export const FORMAT = 1;
const ARRAYS = {
  float64: Float64Array, float32: Float32Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array,
  uint8: Uint8Array, bool: Uint8Array, string: Array,
};
const DTYPES = { F64: "float64", F32: "float32", I64: "int64", I32: "int32", I8: "int8", U8: "uint8", BOOL: "bool" };
const size = (shape) => shape.reduce((product, n) => product * n, 1);
const fail = (message) => { throw new Error(message); };

// Tensors of a safetensors file, and its header as it is.
export function readTensors(ort, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  if (!(start <= bytes.byteLength)) fail("A file of tensors is not complete: copy the package again.");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(header)) {
    const content = bytes.slice(start + begin, start + end); // a copy, which is aligned
    if (content.length !== end - begin) fail(`Tensor ${name} is not complete: copy the package again.`);
    const type = DTYPES[dtype] ?? fail(`Tensor ${name} is of the unknown type ${dtype}.`);
    tensors[name] = new ort.Tensor(type, new ARRAYS[type](content.buffer), shape);
  }
  return { tensors, header: bytes.slice(0, start) };
}

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
    const trainer = new this();
    const manifest = JSON.parse(new TextDecoder().decode(await read("training.json")));
    if (manifest.format !== FORMAT) fail(`The package has format ${manifest.format}, this reads ${FORMAT}: export it again.`);
    Object.assign(trainer, { ort, manifest, files: {}, values: {}, sessions: {} });
    for (const name of manifest.tensors) {
      trainer.files[name] = readTensors(ort, await read(name));
      Object.assign(trainer.values, trainer.files[name].tensors);
    }
    for (const name of ["step", "epoch", "evaluate", "infer"]) trainer.sessions[name] = await open(await read(`${name}.onnx`));
    return trainer;
  }

  get epoch() { return Number(this.values.ortlearn_epoch.data[0]); }

  async run(graph, feeds) {
    const session = this.sessions[graph];
    return session.run(Object.fromEntries(session.inputNames.map((name) => [name, feeds[name]])));
  }

  // A tensor of an input that the manifest describes, of nested or flat arrays.
  tensor({ name, type, shape }, values) {
    const n = shape.length && shape[0] === null ? values.length : null;
    let flat = values;
    if (Array.isArray(values)) flat = values.flat(Infinity);
    const width = size(shape.slice(1));
    const rows = n !== null && n !== flat.length ? n : flat.length / width;
    if (rows * width !== flat.length || !Number.isInteger(rows)) fail(`${name} must be of shape [${shape}] (null: any number), and has ${flat.length} values.`);
    const wrong = Array.from(flat).find((value) => (type === "string") !== (typeof value === "string"));
    if (wrong !== undefined) fail(`${name} must be of type ${type}, and has ${JSON.stringify(wrong)}.`);
    const numbers = type === "int64" ? Array.from(flat, (value) => BigInt(value)) : Array.from(flat);
    return new this.ort.Tensor(type, ARRAYS[type].from(numbers), [rows, ...shape.slice(1)]);
  }

  // Rows, labels and weights by input; X are rows, or rows by input where there are several.
  columns(X, y, sampleWeight) {
    const { features, label, sample_weight: weight = null } = this.manifest;
    if (weight === null && sampleWeight !== undefined) fail("The package takes no weights of rows: export it with weighted=True.");
    const single = features.length === 1 && (Array.isArray(X) || ArrayBuffer.isView(X));
    const found = Object.fromEntries(features.map((item) => [item.name, this.tensor(item, single ? X : X[item.name])]));
    const n = Object.values(found)[0].dims[0];
    if (y !== undefined && weight !== null) {
      found[weight.name] = this.tensor(weight, sampleWeight ?? new Float64Array(n * size(weight.shape.slice(1))).fill(1));
    }
    if (y === undefined || label === null) return this.checked(found);
    if (label.classes !== null) {
      const numbers = new Map(label.classes.map((name, number) => [name, number]));
      y = Array.from(y, (name) => numbers.get(name) ?? fail(`y has ${name}, the classes are ${label.classes}.`));
      if (label.encoding === "one_hot") y = y.map((number) => label.classes.map((_, i) => Number(i === number)));
    }
    return this.checked(Object.assign(found, { [label.name]: this.tensor(label, y) }));
  }

  // Columns, which must have as many rows.
  checked(columns) {
    const rows = Object.entries(columns).map(([name, { dims }]) => `${name}: ${dims[0]}`);
    if (new Set(rows.map((text) => text.split(": ").pop())).size > 1) fail(`Inputs must have as many rows, and have ${rows.join(", ")}.`);
    return columns;
  }

  // Trains on all rows in an order, and returns the objective of each batch.
  async trainEpoch(columns, order) {
    const { batch_size, schedule: { rates }, carried, dtype } = this.manifest;
    const rate = new this.ort.Tensor(dtype, ARRAYS[dtype].of(rates[Math.min(this.epoch, rates.length - 1)]), []);
    const full = Math.floor(order.length / batch_size) * batch_size;
    const rows = BigInt64Array.from(order, (number) => BigInt(number));
    const parts = [["epoch", rows.slice(0, full), [full / batch_size, batch_size]], ["step", rows.slice(full), [order.length - full]]];
    let values = this.values, objectives = [];
    for (const [graph, numbers, shape] of parts.filter(([, numbers]) => numbers.length)) {
      const names = this.manifest[graph];
      const feeds = { ...columns, [names.rate]: rate, [names.rows]: new this.ort.Tensor("int64", numbers, shape) };
      for (const item of carried) feeds[item[graph].input] = values[item.name];
      const found = await this.run(graph, feeds);
      objectives.push(...found[names.objective].data);
      values = Object.fromEntries(carried.map((item) => [item.name, found[item[graph].output]]));
    }
    if (!objectives.every(Number.isFinite)) fail("The loss is not finite: lower the learning rate, or scale the features.");
    const next = new this.ort.Tensor("int64", BigInt64Array.of(BigInt(this.epoch + 1)), []);
    this.values = { ...values, ortlearn_epoch: next };
    return objectives;
  }

  async fit(X, y, { epochs = 1, onEpoch = () => {}, random = Math.random, sampleWeight } = {}) {
    const columns = this.columns(X, y, sampleWeight);
    const n = Object.values(columns)[0].dims[0];
    for (let i = 0; i < epochs; i++) {
      const objectives = await this.trainEpoch(columns, shuffled(n, random));
      await onEpoch({ epoch: this.epoch, objective: objectives.reduce((a, b) => a + b) / objectives.length });
    }
    return this;
  }

  // The mean loss without penalty, and the score: accuracy, or R2.
  async evaluate(X, y, sampleWeight) {
    const { loss, score } = this.manifest.evaluate;
    const found = await this.run("evaluate", { ...this.columns(X, y, sampleWeight), ...this.values });
    return { loss: found[loss].data[0], score: score === null ? null : found[score].data[0] };
  }

  // The outputs of the model by name, such as label and probabilities.
  async predict(X) { return this.run("infer", { ...this.columns(X), ...this.values }); }

  // The bytes of the files that training changes.
  changed() {
    return Object.fromEntries(Object.entries(this.files).map(([name, { tensors, header }]) => {
      const parts = Object.keys(tensors).map((key) => this.values[key].data);
      const bytes = parts.map((data) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      return [name, Uint8Array.from([header, ...bytes].flatMap((part) => Array.from(part)))];
    }));
  }
}
