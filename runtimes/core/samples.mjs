// Samples, labels and weights, which are checked before they become tensors; and tensors as samples.

import { fail } from "./files.mjs";

const RANGES = { int64: [-(2n ** 63n), 2n ** 63n - 1n], int32: [-(2n ** 31n), 2n ** 31n - 1n], int8: [-128n, 127n], uint8: [0n, 255n], bool: [0n, 1n] };
const ARRAYS = {
  float64: Float64Array, float32: Float32Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array,
  uint8: Uint8Array, bool: Uint8Array, string: Array,
};
const size = (shape) => shape.reduce((product, n) => product * n, 1);
const isTyped = (value) => ArrayBuffer.isView(value) && !(value instanceof DataView);
const isList = (value) => Array.isArray(value) || isTyped(value);

// A value as short JSON.
export function text(value) {
  const plain = (_, item) => {
    if (typeof item === "bigint") return Number(item);
    if (typeof item === "number" && !Number.isFinite(item)) return `${item}`;
    return isTyped(item) ? Array.from(item) : item;
  };
  if (typeof value === "bigint") value = Number(value);
  if (typeof value === "number" && !Number.isFinite(value)) return `${value}`;
  let found;
  try {
    found = JSON.stringify(value, plain) ?? String(value);
  } catch { // a circle
    found = String(value);
  }
  return found.length <= 60 ? found : `${found.slice(0, 60)}...`;
}

// Whether nested lists have a shape, in which null is any number.
function hasShape(row, shape) {
  if (!isList(row)) return shape.length === 0;
  if (!shape.length || !(shape[0] === null || shape[0] === row.length)) return false;
  return Array.from(row).every((part) => hasShape(part, shape.slice(1)));
}

export function checkRows(name, rows) {
  if (!isList(rows)) fail(`${name} must be an array of samples, and is ${text(rows)}.`);
  if (!rows.length) fail(`${name} has no samples.`);
}

// The number of a value in a type, or undefined if the type does not have it.
function converted(value, type) {
  if (type === "string") return typeof value === "string" ? value : undefined;
  if (!["number", "bigint", "boolean"].includes(typeof value)) return undefined;
  if (RANGES[type] === undefined) {
    const number = type === "float32" ? Math.fround(Number(value)) : Number(value);
    return Math.abs(number) === Infinity ? undefined : number;
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) return undefined;
  const [lowest, highest] = RANGES[type], whole = BigInt(value);
  if (whole < lowest || whole > highest) return undefined;
  return type === "int64" ? whole : Number(whole);
}

// The sizes of nested lists, by their first items.
const sizes = (value) => (isList(value) ? [value.length, ...sizes(value[0])] : []);

// A tensor of the type and the shape of an input, of nested or flat arrays.
export function asTensor(ort, name, { type, shape, missing }, rows) {
  if (!(type in ARRAYS)) fail(`${name} is of type ${type}, which is not supported.`);
  checkRows(name, rows);
  const inner = shape.slice(1), width = size(inner);
  let dims = [rows.length, ...inner];
  if (isTyped(rows) && width !== 1) { // samples one after the other
    if (inner.includes(null) || rows.length % width) fail(`${name} must have samples of shape [${inner}], and has ${rows.length} values.`);
    dims = [rows.length / width, ...inner];
  } else {
    const shapes = inner.every((n) => n === 1) ? [[], [1], inner] : [inner];
    for (let i = 0; i < rows.length; i++) {
      if (!shapes.some((known) => hasShape(rows[i], known))) fail(`${name} must have samples of shape ${text(inner)}, and sample ${i} is ${text(rows[i])}.`);
    }
    if (inner.includes(null)) {
      dims = sizes(rows);
      if (!hasShape(rows, dims)) fail(`${name} must have samples of shape ${text(inner)}, equally long.`);
    }
  }
  const flat = isTyped(rows) ? rows : flattened(rows), length = flat.length / dims[0];
  const data = type === "string" ? new Array(flat.length) : new ARRAYS[type](flat.length);
  for (let i = 0; i < flat.length; i++) {
    const value = converted(flat[i], type);
    if (value === undefined) fail(`${name} must be of type ${type}, and sample ${Math.floor(i / length)} has ${text(flat[i])}.`);
    data[i] = value;
  }
  const at = Array.isArray(missing) ? data.findIndex((value, i) => Number.isNaN(value) && !missing.includes(i % length)) : -1;
  if (at >= 0) fail(`${name} has NaN in sample ${Math.floor(at / length)}, column ${at % length}, where no value may be missing.`);
  return new ort.Tensor(type, data, dims);
}

function flattened(row) {
  return isList(row) ? Array.from(row).flatMap(flattened) : [row]; // with holes as undefined
}

// Fails unless all options are known.
export function checkOptions(options, known) {
  if (typeof options !== "object") fail(`Options must be an object, and are ${text(options)}.`);
  const unknown = Object.keys(options ?? {}).filter((name) => !known.includes(name));
  if (unknown.length) fail(`Unknown option ${unknown.join(", ")}; options are ${known.join(", ")}.`);
}

// Fails unless weights of samples are finite, not negative, and not all zero.
export function checkWeights(data) {
  const wrong = data.find((value) => !(value >= 0 && value < Infinity));
  if (wrong !== undefined) fail(`sample_weight must be finite and not negative, and has ${text(wrong)}.`);
  if (!data.some((value) => value > 0)) fail("sample_weight is zero for every sample: at least one must be above 0.");
}

// A tensor as nested arrays of numbers, texts and booleans.
export function asRows({ type, data, dims }) {
  const plain = (value) => {
    if (type === "bool") return Boolean(value);
    return typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;
  };
  const nested = (begin, [n, ...inner]) => {
    if (n === undefined) return plain(data[begin]);
    const step = size(inner);
    return Array.from({ length: n }, (_, i) => nested(begin + i * step, inner));
  };
  return nested(0, dims);
}
