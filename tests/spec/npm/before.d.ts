// Written by scripts/docs from the table of parameters.

/** The bytes of a file, what has them (a Blob or a Response), or a URL from which they are fetched. */
export type Bytes = Uint8Array | ArrayBuffer | ArrayBufferView | Blob | Response | URL;

/** How a call is stopped, followed and bounded. */
export interface CallOptions {
  /** Stops the call: its promise is rejected with the signal's reason, and its worker ends. */
  signal?: AbortSignal;
  /** Gets the fraction of the work that is done, by an estimate; 1 at the end. */
  onProgress?: (fraction: number) => void;
  /** Bytes of memory that the conversion may take; a picture that needs more is rejected before it is decoded. Default: 1 GiB. */
  maxMemory?: number;
}

/** The parameters of `POST /convert`. */
export interface Parameters {
