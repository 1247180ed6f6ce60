// Trains packages of ortlearn in Node.

import { chmod, cp, lstat, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

import * as module from "onnxruntime-node";
import { Trainer } from "ortlearn-core";

const ort = module.default ?? module;
const OPTIONS = { graphOptimizationLevel: "basic", logSeverityLevel: 4 }; // errors are raised
const MAX_BYTES = 2 ** 31 - 1;

// The bytes of a regular file; a pipe or a device is not opened, since it may have no end.
async function readRegular(path) {
  let found;
  try {
    found = await stat(path);
  } catch (error) {
    throw error.code === "ENOENT" ? new Error(`${path} is missing: copy the package again.`) : error;
  }
  if (!found.isFile() || found.size > MAX_BYTES) throw new Error(`${path} is not a regular file of at most ${MAX_BYTES} bytes.`);
  return new Uint8Array(await readFile(path));
}

// Removes the files that killed processes have left beside a file. Windows has no signal 0.
async function removeStale(path) {
  const start = `${basename(path)}.`;
  for (const name of process.platform === "win32" ? [] : await readdir(dirname(path))) {
    const pid = name.startsWith(start) ? /^(\d+)\.new$/.exec(name.slice(start.length))?.[1] : undefined;
    try {
      if (pid !== undefined) process.kill(Number(pid), 0);
    } catch (error) {
      if (error.code === "ESRCH") await rm(join(dirname(path), name), { force: true });
    }
  }
}

// Writes a file beside another one, and renames it: a reader sees the old file or the new one.
async function replaceFile(path, bytes) {
  await removeStale(path);
  const beside = `${path}.${process.pid}.new`;
  await rm(beside, { force: true });
  try {
    const file = await open(beside, "wx");
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    const old = await stat(path).catch(() => null);
    if (old !== null) await chmod(beside, old.mode & 0o7777);
    await rename(beside, path);
  } finally {
    await rm(beside, { force: true });
  }
}

const isEmpty = async (folder) => (await lstat(folder)).isDirectory() && (await readdir(folder)).length === 0;

class NodeTrainer extends Trainer {
  // Writes weights and states into the package, or a copy of the package with them into a new folder.
  async save(folder = this.folder) {
    if (typeof folder !== "string") throw new Error("The folder must be a path.");
    if (resolve(folder) === resolve(this.folder) || (await this.hasThisPackage(folder))) return this.replaceIn(folder);
    const exists = await stat(folder).then(() => true, () => false);
    if (exists && !(await isEmpty(folder))) throw new Error(`${folder} has other files: pass a new folder.`);
    const beside = join(dirname(resolve(folder)), `.${basename(resolve(folder))}.${process.pid}.new`);
    await rm(beside, { recursive: true, force: true });
    await mkdir(dirname(beside), { recursive: true });
    try {
      await cp(this.folder, beside, { recursive: true });
      await this.replaceIn(beside);
      if (exists) await rm(folder, { recursive: true });
      return await rename(beside, folder);
    } finally {
      await rm(beside, { recursive: true, force: true });
    }
  }

  async replaceIn(folder) {
    for (const [name, bytes] of Object.entries(this.changed())) await replaceFile(join(folder, name), bytes);
  }

  // Whether a folder has the package of this trainer, with any weights and states.
  async hasThisPackage(folder) {
    const path = join(folder, "training.json");
    const bytes = await readRegular(path).catch(() => null);
    return bytes !== null && Buffer.compare(bytes, this.manifestBytes) === 0;
  }
}

export async function load(folder, options = {}) {
  if (typeof folder !== "string") throw new Error("The folder of a package must be a path.");
  const read = (name) => readRegular(join(folder, name));
  const session = (bytes) => ort.InferenceSession.create(bytes, { ...OPTIONS, ...options });
  const trainer = await NodeTrainer.of(ort, read, session);
  return Object.assign(trainer, { folder, manifestBytes: await read("training.json") });
}

export { ort };
