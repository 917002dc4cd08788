// A conversion as a program, in the languages of the page that converts. `it` has the server's
// `url`, the `type` and `ending` of the picture, and the `parameters` as pairs of texts.

// A text in the languages' own quotes. What JSON escapes, Python, JavaScript and Go escape alike.
const quoted = (text) => JSON.stringify(text);
const quotedInShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const quotedInPhp = (text) => `'${text.replace(/[\\']/g, "\\$&")}'`;

const lines = (parameters, line) => parameters.map(([name, value]) => line(name, value)).join("");

// The element of a picture with its placeholder, which a page draws by the package thumbhash.
const placeholderTag = ({ width, height, placeholder }) =>
  `<img src="picture.webp" width="${width}" height="${height}" alt="" data-thumbhash="${placeholder}">`;

const SNIPPETS = {
  curl: ({ url, type, ending, parameters }) => `curl --fail-with-body -sS ${quotedInShell(url + "/convert")} \\
  -H "Authorization: Bearer $TOWEBP_TOKEN" \\
  -F 'file=@picture.${ending};type=${type}' \\
${lines(parameters, (name, value) => `  --form-string ${quotedInShell(name + "=" + value)} \\\n`)}  --max-time 120 -o picture.webp
`,

  python: ({ url, type, ending, parameters }) => `import os

import requests

with open("picture.${ending}", "rb") as picture:
    response = requests.post(
        ${quoted(url + "/convert")},
        headers={
            "Authorization": f"Bearer {os.environ['TOWEBP_TOKEN']}",
            "Content-Type": "${type}",
        },
        params={
${lines(parameters, (name, value) => `            "${name}": ${quoted(value)},\n`)}        },
        data=picture,
        timeout=120,
    )
if not response.ok:
    raise SystemExit(response.text)
with open("picture.webp", "wb") as webp:
    webp.write(response.content)
`,

  node: ({ url, type, ending, parameters }) => `import { readFile, writeFile } from "node:fs/promises";

const parameters = new URLSearchParams({
${lines(parameters, (name, value) => `  ${name}: ${quoted(value)},\n`)}});
const response = await fetch(${quoted(url + "/convert?")} + parameters, {
  method: "POST",
  headers: {
    Authorization: \`Bearer \${process.env.TOWEBP_TOKEN}\`,
    "Content-Type": "${type}",
  },
  body: await readFile("picture.${ending}"),
  signal: AbortSignal.timeout(120_000),
});
if (!response.ok) throw new Error(await response.text());
await writeFile("picture.webp", Buffer.from(await response.arrayBuffer()));
`,

  php: ({ url, type, ending, parameters }) => `<?php
$curl = curl_init(${quotedInPhp(url + "/convert")});
curl_setopt_array($curl, [
    CURLOPT_HTTPHEADER => ['Authorization: Bearer ' . getenv('TOWEBP_TOKEN')],
    CURLOPT_POSTFIELDS => [
        'file' => new CURLFile('picture.${ending}', '${type}'),
${lines(parameters, (name, value) => `        '${name}' => ${quotedInPhp(value)},\n`)}    ],
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 120,
]);
$webp = curl_exec($curl);
if ($webp === false || curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 200) {
    fwrite(STDERR, ($webp ?: curl_error($curl)) . "\\n");
    exit(1);
}
file_put_contents('picture.webp', $webp);
`,

  go: ({ url, type, ending, parameters }) => `package main

import (
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

func main() {
	picture, err := os.Open("picture.${ending}")
	if err != nil {
		log.Fatal(err)
	}
	parameters := url.Values{
${lines(parameters, (name, value) => `\t\t"${name}": {${quoted(value)}},\n`)}	}
	request, err := http.NewRequest("POST", ${quoted(url + "/convert?")}+parameters.Encode(), picture)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOWEBP_TOKEN"))
	request.Header.Set("Content-Type", "${type}")
	client := http.Client{Timeout: 2 * time.Minute}
	response, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		log.Fatal(string(body))
	}
	if err := os.WriteFile("picture.webp", body, 0o644); err != nil {
		log.Fatal(err)
	}
}
`,
};
