// Trains packages of ortlearn in Node.

import { cp, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

import * as module from "onnxruntime-node";
import { Trainer } from "ortlearn-core";

const ort = module.default ?? module;
const OPTIONS = { graphOptimizationLevel: "basic" };

class NodeTrainer extends Trainer {
  // Writes weights and states into a folder, with the rest of the package; into the package by default.
  async save(folder = this.folder) {
    await mkdir(folder, { recursive: true });
    if (resolve(folder) !== resolve(this.folder)) await cp(this.folder, folder, { recursive: true });
    for (const [name, bytes] of Object.entries(this.changed())) {
      const path = join(folder, name);
      await writeFile(`${path}.new`, bytes); // a reader sees the old file or the new one
      await rename(`${path}.new`, path);
    }
  }
}

export async function load(folder, options = {}) {
  const read = async (name) => new Uint8Array(await readFile(join(folder, name)));
  const open = (bytes) => ort.InferenceSession.create(bytes, { ...OPTIONS, ...options });
  const trainer = await NodeTrainer.of(ort, read, open);
  return Object.assign(trainer, { folder });
}

export { ort };
