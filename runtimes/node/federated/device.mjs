// A device: node device.mjs PACKAGE ROWS. It keeps its samples, and trains from the weights that it is sent.
// A line of its input names a file of weights to start from and one for the answer; it answers with its number of samples.

import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";

import { readTensors } from "ortlearn-core";

import { load, ort } from "../index.mjs";

const [folder, rows] = process.argv.slice(2);
const { X, y } = JSON.parse(await readFile(rows, "utf8"));
const trainer = await load(folder, { intraOpNumThreads: 1 }); // ten devices on one machine
for await (const line of createInterface({ input: process.stdin })) {
  const { weights, result, epochs } = JSON.parse(line);
  const { tensors } = readTensors(ort, new Uint8Array(await readFile(weights)), weights);
  for (const { name, state } of trainer.manifest.carried) if (state === null) trainer.values[name] = tensors[name];
  await trainer.fit(X, y, { epochs });
  await writeFile(result, trainer.changed()["values.safetensors"]);
  console.log(JSON.stringify({ rows: y.length }));
}
