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
  const isAddress = typeof source === "string" || source instanceof URL;
  if (!isAddress && (typeof source !== "object" || source === null)) throw new Error("The package must be an address, or bytes by name.");
  const at = (name) => new URL(name, new URL(`${source}`.replace(/\/?$/, "/"), document.baseURI));
  const unused = new Set(Object.keys(files));
  const read = async (name) => {
    const given = files[name] ?? (isAddress ? undefined : source[name]);
    unused.delete(name);
    if (given === undefined && isAddress) return fetched(at(name));
    if (!(given instanceof Uint8Array)) throw new Error(`${name} is missing: copy the package again.`);
    return given;
  };
  const open = (bytes) => ort.InferenceSession.create(bytes, { ...OPTIONS, ...options });
  const trainer = await WebTrainer.of(ort, read, open);
  if (unused.size) throw new Error(`The package has no ${[...unused]}: pass the files that save() of this package has returned.`);
  return trainer;
}

export { ort };
