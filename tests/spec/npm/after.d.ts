}

export interface ConvertOptions extends Parameters, CallOptions {
  /** A text as that of a token's preset, which completes the parameters: a name=value on each line. */
  preset?: string;
  /** Pixels that a picture may have; one with more is rejected before it is decoded. Default: 100 million. */
  maxPixels?: number;
}

export interface Info {
  width: number;
  height: number;
  /** `image/webp`; that of the input if it came back by `if_larger: "original"`. */
  type: string;
  /** How the pixels of the WebP are coded. */
  mode?: "lossy" | "lossless" | "mixed";
  /** The quality that was found, beside `max_bytes` or `target`. */
  quality?: number;
  /** The score of SSIMULACRA2 that was found, beside `target`. */
  score?: number;
  /** The ThumbHash of the picture in base64, with `placeholder`. */
  placeholder?: string;
  inputBytes: number;
  outputBytes: number;
  /** The time that the conversion took, without loading and waiting. */
  milliseconds: number;
}

/** Converts a PNG, JPEG, GIF, BMP or WebP to the same bytes as the server does. Rejects with a `Problem`. */
export function convert(file: Bytes, options?: ConvertOptions): Promise<{ bytes: Uint8Array; info: Info }>;

export interface EncodeOptions extends CallOptions {
  /** 0 (smallest) to 100 (best). Default: 85. */
  quality?: number;
  /** Whether pixels stay as they are; the same as `mode: "lossless"`. */
  lossless?: boolean | 0 | 1;
  mode?: "auto" | "lossy" | "lossless";
  effort?: "low" | "medium" | "high" | "max";
  /** Another way to give the effort: 0 to 2 is low, 3 and 4 medium, 5 high, 6 max. */
  method?: 0 | 1 | 2 | 3 | 4 | 5 | 6;
  alpha_quality?: number;
  near_lossless?: number;
  /** Whether transparent pixels of lossless pictures keep their color. */
  exact?: boolean | 0 | 1;
}

/** Encodes pixels as WebP. */
export function encode(
  image: { data: Uint8ClampedArray | Uint8Array; width: number; height: number },
  options?: EncodeOptions,
): Promise<ArrayBuffer>;

/** Sets where the files are, if not beside this one, and how many workers there may be; 0 works in the caller's thread. */
export function init(options?: {
  convert?: WebAssembly.Module | Bytes;
  encode?: WebAssembly.Module | Bytes;
  fonts?: Bytes;
  workers?: number;
}): void;

/** Loads a file ahead of its first use. */
export function load(name?: "convert" | "encode" | "fonts"): Promise<unknown>;

/** Ends the workers; the next call starts new ones. */
export function end(): void;

/** The reason why there is no file: the problem object of the HTTP API (RFC 9457). */
export class Problem extends Error {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly error: string;
}
