// An int8 network of digits: 8 x 8 counts from 0 to 16, as in scikit-learn's data set.

const SIDE = 32; // of the bitmap of a drawing, whose blocks of 4 x 4 pixels are counted

// Returns a function from images, arrays of 64 counts, to their digits.
export async function open(ort, bytes) {
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  const [input] = session.inputNames, [label] = session.outputNames;
  return async (images) => {
    const X = new ort.Tensor("float32", Float32Array.from(images.flat()), [images.length, 64]);
    const found = await session.run({ [input]: X });
    return Array.from(found[label].data, Number);
  };
}

// Returns the counts of a drawing of points [x, y] on strokes, as high as the image and in its middle.
export function counts(points) {
  const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = (SIDE - 5) / Math.max(bottom - top, right - left, 1e-6);
  const middle = (left + right) / 2, centre = (top + bottom) / 2;
  const ink = new Set();
  for (const [x, y] of points) {
    const column = Math.round(SIDE / 2 + (x - middle) * scale), row = Math.round(SIDE / 2 + (y - centre) * scale);
    for (let i = -2; i < 2; i++) for (let j = -2; j < 2; j++) {
      if (row + i >= 0 && row + i < SIDE && column + j >= 0 && column + j < SIDE) ink.add((row + i) * SIDE + column + j);
    }
  }
  const found = new Array(64).fill(0);
  for (const pixel of ink) found[8 * Math.floor(pixel / SIDE / 4) + Math.floor((pixel % SIDE) / 4)] += 1;
  return found;
}
