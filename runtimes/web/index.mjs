// Trains packages of ortlearn in the browser: weights never leave the page unless it sends them.

import * as ort from "onnxruntime-web";
import { Trainer } from "ortlearn-core";

const OPTIONS = { graphOptimizationLevel: "basic", executionProviders: ["wasm"] };

async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} cannot be read: ${response.status} ${response.statusText}.`);
  return new Uint8Array(await response.arrayBuffer());
}

class WebTrainer extends Trainer {
  // The files that training changes, by name, for a download or another load.
  async save() { return this.changed(); }
}

// Opens a package at an address, or of its files: bytes by name. Files that `save` has returned replace those
// of the package. Options are those of a session of onnxruntime-web.
export async function load(source, { files = {}, ...options } = {}) {
  const at = (name) => new URL(name, new URL(`${source}`.replace(/\/?$/, "/"), document.baseURI));
  const read = async (name) => {
    if (files[name]) return files[name];
    if (typeof source === "string" || source instanceof URL) return fetched(at(name));
    if (!source[name]) throw new Error(`The package lacks ${name}.`);
    return source[name];
  };
  const open = (bytes) => ort.InferenceSession.create(bytes, { ...OPTIONS, ...options });
  return WebTrainer.of(ort, read, open);
}

export { ort };
