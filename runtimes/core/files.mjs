// Files of a training package, which are checked before their content is used.

// Files of weights and states, by the format of the package.
const TENSORS = { 1: ["weights.safetensors", "state.safetensors"], 2: ["values.safetensors"] };
const ARRAYS = {
  float64: Float64Array, float32: Float32Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array,
  uint8: Uint8Array, bool: Uint8Array,
};
const DTYPES = { F64: "float64", F32: "float32", I64: "int64", I32: "int32", I8: "int8", U8: "uint8", BOOL: "bool" };
const MARK = new TextEncoder().encode('"ortlearn_crc32": "');
const ENDS = { input: "", output: "" }, LOOP = { rows: "", rate: "", objective: "" };
const TENSOR = { name: "", type: "", shape: [] };
// An example of a manifest: lists have any length.
const MANIFEST = {
  batch_size: 0, dtype: "", features: [TENSOR], step: LOOP, epoch: LOOP, evaluate: { loss: "" }, tensors: [""],
  carried: [{ ...TENSOR, step: ENDS, epoch: ENDS }], schedule: { rates: [0] },
};
const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
const size = (shape) => shape.reduce((product, n) => product * n, 1);

export const fail = (message) => { throw new Error(message); };
const damaged = (name, reason) => fail(`${name} is damaged, ${reason}: copy the package again.`);

function crc32(bytes) {
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = CRC[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (~crc >>> 0).toString(16).padStart(8, "0");
}

// Writes the checksum of a file into it: the CRC-32 of the file with zeros in its place.
export function seal(bytes) {
  const at = bytes.findIndex((_, i) => MARK.every((byte, k) => bytes[i + k] === byte)) + MARK.length;
  if (at < MARK.length || at + 8 > bytes.length) return "";
  const text = new TextDecoder(), found = text.decode(bytes.subarray(at, at + 8));
  bytes.fill(48, at, at + 8);
  bytes.set(new TextEncoder().encode(crc32(bytes)), at);
  return found; // the checksum that was there
}

const isSealed = (bytes) => {
  const copy = bytes.slice();
  return seal(copy) !== "" && copy.every((byte, i) => byte === bytes[i]);
};

function parsed(bytes, name) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return damaged(name, name === "training.json" ? "it is not a manifest" : "its header does not describe its content");
  }
}

// Tensors of a safetensors file, and its header as it is.
export function readTensors(ort, bytes, name = "A file of tensors", isChecked = false) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = bytes.length < 8 ? Infinity : 8 + Number(view.getBigUint64(0, true));
  if (!(start <= bytes.length)) damaged(name, "it is not complete");
  const header = parsed(bytes.subarray(8, start), name), tensors = {};
  if (typeof header !== "object" || header === null) damaged(name, "its header does not describe its content");
  delete header.__metadata__;
  const begins = {};
  let places = [];
  for (const [key, known] of Object.entries(header)) {
    const { dtype, shape, data_offsets: offsets } = known ?? {}, type = DTYPES[dtype];
    const isCount = (n) => Number.isSafeInteger(n) && n >= 0;
    const whole = type && [shape, offsets].every((part) => Array.isArray(part) && part.every(isCount)) && offsets.length === 2;
    if (!whole || offsets[1] - offsets[0] !== size(shape) * ARRAYS[type].BYTES_PER_ELEMENT || start + offsets[1] > bytes.length) {
      damaged(name, "its header does not describe its content");
    }
    const content = bytes.slice(start + offsets[0], start + offsets[1]); // a copy, which is aligned
    tensors[key] = new ort.Tensor(type, new ARRAYS[type](content.buffer), shape);
    begins[key] = offsets[0];
    places.push(offsets);
  }
  places = places.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const ends = [0, ...places.map((place) => place[1])];
  if (places.some((place, i) => place[0] !== ends[i]) || start + ends.at(-1) !== bytes.length) {
    damaged(name, "its header does not describe its content");
  }
  if (isChecked && !isSealed(bytes)) damaged(name, "it was altered");
  return { tensors, header: bytes.slice(0, start), begins };
}

// The bytes of a file of tensors with new values.
export function writeTensors({ tensors, header, begins }, values, isChecked) {
  const length = Object.values(tensors).reduce((sum, { data }) => sum + data.byteLength, header.length);
  const bytes = new Uint8Array(length);
  bytes.set(header);
  for (const [key, begin] of Object.entries(begins)) {
    const { buffer, byteOffset, byteLength } = values[key].data;
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), header.length + begin);
  }
  if (isChecked) seal(bytes);
  return bytes;
}

// Whether a value has the types of an example.
function fits(value, example) {
  if (Array.isArray(example)) return Array.isArray(value) && value.every((item) => example.every((part) => fits(item, part)));
  if (typeof example !== "object") return typeof value === typeof example;
  return typeof value === "object" && value !== null && Object.keys(example).every((key) => fits(value[key], example[key]));
}

export function readManifest(bytes) {
  const manifest = parsed(bytes, "training.json"), format = manifest?.format;
  if (format === undefined) damaged("training.json", "it is not a manifest");
  if (format !== 1 && format !== 2) fail(`The package has format ${JSON.stringify(format)}, this reads 1 and 2: export it again.`);
  if (format > 1 && !isSealed(bytes)) damaged("training.json", "it was altered");
  const { label = null, sample_weight: weight = null } = manifest;
  const { batch_size: batch, features, carried, schedule } = manifest;
  const whole = fits(manifest, MANIFEST) && [label, weight].every((part) => part === null || fits(part, TENSOR))
    && `${manifest.tensors}` === `${TENSORS[format]}` && (format === 1 || fits(manifest, { files: {} }))
    && Number.isInteger(batch) && batch > 0 && features.length && carried.length && schedule.rates.length;
  if (!whole || !schedule.rates.every(Number.isFinite)) damaged("training.json", "it is not complete");
  return manifest;
}

// Fails unless a file that training does not change has the checksum of the manifest.
export function checkFile({ format, files }, name, bytes) {
  if (format > 1 && files[name] !== crc32(bytes)) damaged(name, "it was altered");
}

// Fails unless values are the carried ones, of their types and shapes, finite and in range.
export function checkValues(values, carried) {
  const known = [...carried, { name: "ortlearn_epoch", type: "int64", shape: [], minimum: 0 }];
  const names = known.map(({ name }) => name).sort(), found = Object.keys(values).sort();
  if (`${names}` !== `${found}`) fail(`The package must have the tensors ${names}, and has ${found}.`);
  for (const { name, type, shape, minimum = -Infinity } of known) {
    const { type: other, dims, data } = values[name];
    if (type !== other || `${shape}` !== `${dims}`) fail(`Tensor ${name} must be ${type} of shape [${shape}], not ${other} of shape [${dims}].`);
    for (let i = 0; i < data.length; i++) {
      const value = Number(data[i]);
      if (!Number.isFinite(value) || value < minimum) fail(`Tensor ${name} has values that are not finite, or out of range.`);
    }
  }
}

// Whether all numbers of a tensor are finite.
export function allFinite({ data }) {
  for (let i = 0; i < data.length; i++) if (!Number.isFinite(Number(data[i]))) return false;
  return true;
}
