// Converts by the npm package, and gives a line for each case: the file's length and hash, or the
// problem. Node runs it as a program; Chromium gets `outcomes` as a function.

export async function outcomes(towebp, pictures, mark, cases) {
  const fnv1a = (bytes) => {
    let hash = 0x811c9dc5;
    for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
    return (hash >>> 0).toString(16).padStart(8, "0");
  };
  const outcome = async ([name, parameters]) => {
    const options = Object.fromEntries(parameters);
    if (options.watermark_image) options.watermark_image = mark;
    try {
      const { bytes } = await towebp.convert(pictures[name], options);
      return `${bytes.length} ${fnv1a(bytes)}`;
    } catch (problem) {
      return `${problem.code}: ${problem.detail}`;
    }
  };
  const lines = [];
  for (const line of cases) lines.push(outcome(line)); // as many at a time as there are workers
  return Promise.all(lines);
}
