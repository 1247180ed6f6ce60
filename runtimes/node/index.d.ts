import { Trainer } from "ortlearn-core";

export { FitOptions, Labels, Rows, Tensor } from "ortlearn-core";

export interface NodeTrainer extends Trainer {
  readonly folder: string;
  /** Writes weights and states into the package, or a copy of it into a new or an empty folder. */
  save(folder?: string): Promise<void>;
}

/** Opens the training package in a folder; options are those of a session of onnxruntime-node. */
export declare function load(folder: string, options?: Record<string, unknown>): Promise<NodeTrainer>;
