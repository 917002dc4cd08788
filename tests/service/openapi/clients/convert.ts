// Converts a picture by a client that @hey-api/openapi-ts has made: as the body, then as a form.
//
//     node convert.js URL TOKEN PICTURE RAW FORM
//
// The client is in the folder `generated` beside this file. RAW and FORM are the files to write.

import { convert } from './generated';
import { formDataBodySerializer } from './generated/client';
import { client } from './generated/client.gen';

// Node's own names, without the package of their types.
declare const process: { argv: string[] };
declare function require(name: string): any;
const { readFileSync, writeFileSync } = require('node:fs');

const [url, token, picture, raw, form] = process.argv.slice(2);
// The token goes into a header; without this, into the URL as well.
client.setConfig({ baseUrl: url, auth: ({ scheme }) => (scheme === 'bearer' ? token : undefined) });

type Answer = { data?: unknown; error?: unknown };

async function save(path: string, { data, error }: Answer) {
    if (error !== undefined) {
        throw new Error(JSON.stringify(error));
    }
    writeFileSync(path, Buffer.from(await (data as Blob).arrayBuffer()));
}

declare const Buffer: { from(bytes: ArrayBuffer): Uint8Array };

async function main() {
    const file = new Blob([readFileSync(picture)], { type: 'image/png' });
    const query = { width: 40 };
    await save(raw, await convert({ body: file, query, headers: { 'Content-Type': 'image/png' } }));
    // It makes types of the first media type alone; a form is sent by its own serializer.
    const fields = { file } as unknown as Blob;
    const headers = { 'Content-Type': null };
    await save(form, await convert({ ...formDataBodySerializer, body: fields, query, headers }));
}

main();
