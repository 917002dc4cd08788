// Files as a ZIP, or into a folder.

const sum = (list, value) => list.reduce((total, item) => total + value(item), 0);

const CRC = Uint32Array.from({ length: 256 }, (_, index) => {
  for (let bit = 0; bit < 8; bit += 1) index = index & 1 ? 0xedb88320 ^ index >>> 1 : index >>> 1;
  return index;
});

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) crc = CRC[(crc ^ byte) & 255] ^ crc >>> 8;
  return ~crc >>> 0;
}

// Files that are stored as they are (APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16). Names that
// differ in the case of letters alone are the same on some systems.
async function zip(files) {
  const total = sum(files, ([name, blob]) => blob.size + 2 * 3 * name.length + 80);
  if (total >= 2 ** 32 - 1 || files.length >= 2 ** 16 - 1) {
    throw new Error("These are more than 4 GB or 65,534 pictures, which a ZIP cannot hold. Download them in parts.");
  }
  const now = new Date();
  const time = now.getHours() << 11 | now.getMinutes() << 5 | now.getSeconds() >> 1;
  const date = now.getFullYear() - 1980 << 9 | now.getMonth() + 1 << 5 | now.getDate();
  const names = new Set();
  const [parts, central] = [[], []];
  let offset = 0;
  for (const [wanted, blob] of files) {
    const name = new TextEncoder().encode(distinct(wanted, names));
    const crc = crc32(new Uint8Array(await blob.arrayBuffer()));
    // Version 2.0, a name in UTF-8 (bit 11), stored.
    const common = [[2, 20], [2, 1 << 11], [2, 0], [2, time], [2, date], [4, crc], [4, blob.size], [4, blob.size], [2, name.length], [2, 0]];
    const head = fields([4, 0x04034b50], ...common);
    parts.push(head, name, blob);
    central.push(fields([4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]), name);
    offset += head.length + name.length + blob.size;
  }
  const length = sum(central, (part) => part.length);
  const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, length], [4, offset], [2, 0]);
  return new Blob([...parts, ...central, end], { type: "application/zip" });
}

// Numbers of 2 or 4 bytes, the least significant byte first.
function fields(...values) {
  return Uint8Array.from(values.flatMap(([length, value]) =>
    Array.from({ length }, (_, index) => value >>> 8 * index & 255)));
}

const numbered = (name, number) => number > 1 ? name.replace(/(\.[^./]*)$/, `-${number}$1`) : name;

function distinct(name, names) {
  let number = 1;
  while (names.has(numbered(name, number).toLowerCase())) number += 1;
  const result = numbered(name, number);
  names.add(result.toLowerCase());
  return result;
}

// Writes each file by its path into the folder, in the browsers that can. What is there stays: a
// name that is taken gets a number.
async function saveInto(folder, files, onSaved) {
  for (const [index, [path, blob]] of files.entries()) {
    const folders = path.split("/");
    const name = folders.pop();
    let parent = folder;
    for (const part of folders) parent = await parent.getDirectoryHandle(part, { create: true });
    let number = 1;
    while (await isTaken(parent, numbered(name, number))) number += 1;
    const file = await parent.getFileHandle(numbered(name, number), { create: true });
    const stream = await file.createWritable();
    await stream.write(blob);
    await stream.close();
    onSaved(index + 1);
  }
}

async function isTaken(folder, name) {
  try {
    await folder.getFileHandle(name);
    return true;
  } catch (error) {
    if (error.name === "NotFoundError") return false;
    if (error.name === "TypeMismatchError") return true; // a folder
    throw error;
  }
}
