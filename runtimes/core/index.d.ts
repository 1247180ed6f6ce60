/** Rows: an array of arrays, a flat typed array, or an object of them by input. */
export type Rows = ArrayLike<number>[] | number[] | Float32Array | Float64Array | Record<string, unknown[] | ArrayLike<number>>;
export type Labels = ArrayLike<number | string | boolean> | number[][];

/** A tensor as onnxruntime-common has it. */
export interface Tensor {
  readonly type: string;
  readonly data: ArrayLike<number | bigint | string>;
  readonly dims: readonly number[];
}

export interface FitOptions {
  /** Passes over the samples, 1 by default. */
  epochs?: number;
  /** Called after each epoch with its number and its mean objective; training waits for what it returns. */
  onEpoch?: (event: { epoch: number; objective: number }) => unknown;
  /** Numbers in [0, 1) that samples are shuffled by, Math.random by default. */
  random?: () => number;
  /** A weight for each sample, of a package that was exported with weighted=True. */
  sampleWeight?: ArrayLike<number>;
}

/** A training package: its manifest, weights and states. */
export declare class Trainer {
  readonly manifest: Record<string, any>;
  /** Weights, states and `ortlearn_epoch` by name. */
  values: Record<string, Tensor>;
  /** Number of epochs trained. */
  readonly epoch: number;
  columns(X: Rows, y?: Labels, sampleWeight?: ArrayLike<number>): Record<string, Tensor>;
  trainEpoch(columns: Record<string, Tensor>, order: ArrayLike<number | bigint>): Promise<number[]>;
  fit(X: Rows, y?: Labels | null, options?: FitOptions): Promise<this>;
  evaluate(X: Rows, y?: Labels | null, sampleWeight?: ArrayLike<number>): Promise<{ loss: number; score: number | null }>;
  /** Outputs of the model by name, such as `label`: one item a sample. `run("infer", ...)` returns tensors. */
  predict(X: Rows): Promise<Record<string, any[]>>;
  run(graph: "step" | "epoch" | "evaluate" | "infer", feeds: Record<string, Tensor>): Promise<Record<string, Tensor>>;
  changed(): Record<string, Uint8Array>;
}

export declare function readTensors(ort: unknown, bytes: Uint8Array, name?: string): { tensors: Record<string, Tensor>; header: Uint8Array };
export declare function shuffled(n: number, random?: () => number): number[];
