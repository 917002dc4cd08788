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
  /** 0 (smallest) to 100 (best). Default: 85. */
  quality?: number;
  /** The best quality whose file has at most so many bytes; 100k is 100000, 2M is 2000000. */
  max_bytes?: number | string;
  /** The quality if none is named: fixed: 85; source: of a JPEG, at most one whose file is no larger than it. Default: fixed. */
  default_quality?: "fixed" | "source";
  /** true: if no file has as few bytes as max_bytes, the smallest one; false: a 400 that names its size. Default: false. */
  best_effort?: boolean | "true" | "false";
  /** 30 to 95, the least score of SSIMULACRA2: the smallest file that looks at least so good. */
  target?: number;
  /** low, medium, high, max: how much work goes into the file. Default: medium. */
  effort?: "low" | "medium" | "high" | "max";
  /** auto, lossy, lossless: how pixels are coded. Default: auto. */
  mode?: "auto" | "lossy" | "lossless";
  /** true: as mode=lossless, and a 400 beside mode=lossy; false: as if absent. Default: false. */
  lossless?: boolean | "true" | "false";
  /** 0 to 100, of transparency beside lossy pixels; 100 is without loss. Default: 100. */
  alpha_quality?: number;
  /** 0 to 100, of pixels coded without loss; 100 is exactly. Default: 100. */
  near_lossless?: number;
  /** all, first: whether an animated GIF or PNG keeps moving. Default: all. */
  animation?: "all" | "first";
  /** What is kept: strip: nothing; copyright: creator, copyright and license; icc: the ICC profile; keep: it, Exif and XMP. Default: strip. */
  metadata?: "strip" | "copyright" | "icc" | "keep";
  /** true: X-Towebp-Thumbhash has a placeholder of some 25 bytes, from which pages draw a blurred picture. Default: false. */
  placeholder?: boolean | "true" | "false";
  /** The color that transparency is laid on, as of watermark_color. */
  background?: string;
  /** x,y,width,height in pixels of the upright picture: the part that is converted, and then resized. Default: all of the picture. */
  crop?: string;
  /** 1 to 16383 pixels, the width of the box that the picture is resized to. Default: that of the picture. */
  width?: number;
  /** 1 to 16383 pixels, the height of that box. Default: that of the picture. */
  height?: number;
  /** contain and inside (all of the picture, within the box), cover (the box is filled, what goes beyond it is cut off), fill (the box is filled, by stretching). Default: contain. */
  fit?: "contain" | "cover" | "fill" | "inside";
  /** With fit=cover, the part that stays: the names of watermark_position. Default: center. */
  gravity?: "topLeft" | "top" | "topRight" | "left" | "center" | "right" | "bottomLeft" | "bottom" | "bottomRight";
  /** true: the picture may become larger than it is. Default: false. */
  enlarge?: boolean | "true" | "false";
  /** 0.1 to 8, pixels of the device for each of width and height, such as 2 or 1.5. Default: 1. */
  dpr?: number;
  /** webp, original: what is sent if the WebP is not smaller than the input. Default: webp. */
  if_larger?: "webp" | "original";
  /** Any characters that the fonts have; a line feed begins a new line. */
  watermark?: string;
  /** The height of the em: 8 to 200 pixels; or 0.1% to 100% of the shorter side, such as 3%, at least 8 pixels; or auto, 2.5 % of that side, at least 12 pixels. The range of pixels does not bound the latter two, whose lines are broken to fit. Default: 24. */
  watermark_size?: number | string;
  /** white, black, red, blue, yellow, gray, #RRGGBB, #RGB, in any case of letters and with or without the #. Default: white. */
  watermark_color?: string;
  /** none, outline (a line around the letters), shadow (a soft one). */
  watermark_outline?: "none" | "outline" | "shadow";
  /** The bytes of a PNG or JPEG that is drawn onto the picture. */
  watermark_image?: Bytes;
  /** topLeft, top, topRight, left, center, right, bottomLeft, bottom, bottomRight, in any case of letters, or as bottom-right. Default: bottomRight. */
  watermark_position?: "topLeft" | "top" | "topRight" | "left" | "center" | "right" | "bottomLeft" | "bottom" | "bottomRight";
  /** 0 (invisible) to 100 (solid). Default: 50. */
  watermark_opacity?: number;
  /** What is kept free beside it, or between tiles: 0 to 16383 pixels, or 0% to 25% of the shorter side, such as 2.5%. Default: 2 % of the shorter side. */
  watermark_margin?: number | string;
  /** 1 to 100, percent of the picture's width; a % may follow. Default: its own size. */
  watermark_scale?: number | string;
  /** -360 to 360 degrees, clockwise. Default: 0. */
  watermark_rotate?: number;
  /** true, false: repeated over the whole picture. Default: false. */
  watermark_tile?: boolean | "true" | "false";
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
