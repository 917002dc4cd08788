// What Node and a browser do alike: encoders that take turns over the same pixels, and many
// conversions in a row.

/** Milliseconds a megapixel and bytes of each encoder; the median of the runs. */
export async function measure(encoders, images, runs) {
  const megapixels = images.reduce((sum, { width, height }) => sum + width * height / 1e6, 0);
  const times = encoders.map(() => []);
  const files = encoders.map(() => []);
  for (let run = 0; run < runs; run += 1) {
    for (const [index, [, encode]] of encoders.entries()) {
      const began = performance.now();
      files[index] = [];
      for (const image of images) files[index].push(await encode(image));
      times[index].push((performance.now() - began) / megapixels);
    }
  }
  return encoders.map(([name], index) => ({ name, milliseconds: median(times[index]), files: files[index] }));
}

export const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

/** The encoder's efforts, as functions of an image. */
export function ours(towebp, quality) {
  return ["low", "medium"].map((effort) => [`towebp, ${effort}`, (image) => towebp.encode(image, { quality, effort })]);
}

/** libwebp of @jsquash/webp, without and with SIMD; `at(path)` is where a file of its package is. */
export async function libwebp(at, bytesOf, quality) {
  const { defaultOptions } = await import(at("meta.js"));
  const kinds = [["libwebp (method 4)", "webp_enc"], ["libwebp with SIMD (method 4)", "webp_enc_simd"]];
  return Promise.all(kinds.map(async ([name, file]) => {
    const wasmBinary = await bytesOf(at(`codec/enc/${file}.wasm`));
    const codec = await (await import(at(`codec/enc/${file}.js`))).default({ wasmBinary, noInitialRun: true });
    return [name, async ({ data, width, height }) => codec.encode(data, width, height, { ...defaultOptions, quality })];
  }));
}
