// Recognises the samples of the page of digits in Node: node test/digits.mjs FOLDER prints the digits as JSON.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as ort from "onnxruntime-web";

const folder = resolve(process.argv[2]);
const { counts, open } = await import(pathToFileURL(join(folder, "digits.mjs")));
const samples = JSON.parse(readFileSync(join(folder, "samples.json"), "utf8"));
const digits = await open(ort, new Uint8Array(readFileSync(join(folder, "digits.onnx"))));
// A vertical stroke.
const one = Array.from({ length: 200 }, (_, i) => [100 + i / 40, 20 + i]);
console.log(JSON.stringify({ digits: await digits(samples.images), drawn: await digits([counts(one)]), counts: counts(one) }));
