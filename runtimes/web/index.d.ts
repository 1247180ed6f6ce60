import { Trainer } from "ortlearn-core";

export { FitOptions, Labels, Rows, Tensor } from "ortlearn-core";

export interface WebTrainer extends Trainer {
  /** The files that training changes, by name, for a download or another load. */
  save(): Promise<Record<string, Uint8Array>>;
}

/**
 * Opens a training package at an address, or of its files by name. `files` replace those of the package;
 * other options are those of a session of onnxruntime-web, such as `executionProviders: ["webgpu", "wasm"]`.
 */
export declare function load(
  source: string | URL | Record<string, Uint8Array>,
  options?: { files?: Record<string, Uint8Array> } & Record<string, unknown>,
): Promise<WebTrainer>;
