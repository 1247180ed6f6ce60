// node run.mjs PACKAGE RESULT: checks the record, then trains on its samples, saves, and prints what it found.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

import { readTensors } from "ortlearn-core";
import { checkRecord } from "ortlearn-core/record";

import { load, ort } from "../index.mjs";

const [folder, result] = process.argv.slice(2);
const record = new Uint8Array(await readFile(`${folder}/record.safetensors`));
const differences = await checkRecord(ort, await load(folder), record);

const trainer = await createRequire(import.meta.url)("../index.cjs").load(folder); // as CommonJS does
const { tensors } = readTensors(ort, record);
const { features, label } = trainer.manifest;
const X = tensors[`column ${features[0].name}`].data;
let y = Array.from(tensors[`column ${label.name}`].data, Number);
if (label.classes !== null) y = y.map((number) => label.classes[number]);
const before = await trainer.evaluate(X, y);
const events = [];
await trainer.fit(X, y, { epochs: 3, onEpoch: (event) => events.push(event) });
const after = await trainer.evaluate(X, y);
await trainer.save(result);
const again = await load(result);
const outputs = await again.predict(X);
const predictions = (outputs.label ?? outputs.prediction).flat();
console.log(JSON.stringify({ differences, before, after, events, epoch: again.epoch, predictions }));
