<?php
// Converts a picture to WebP: php convert.php PICTURE WEBP [NAME=VALUE ...]
//
// The token is in TOWEBP_TOKEN, the server in TOWEBP_URL (default http://127.0.0.1:8080). The
// picture and the parameters are sent as a form, as CURLFile makes it.

declare(strict_types=1);

const MEDIA_TYPES = [
    'png' => 'image/png',
    'jpg' => 'image/jpeg',
    'jpeg' => 'image/jpeg',
    'gif' => 'image/gif',
    'bmp' => 'image/bmp',
];
const MOST_WAITING = 60; // seconds

function fail(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(1);
}

/** The status, the headers (names in lower case) and the body of one answer. */
function send(array $fields): array
{
    $url = getenv('TOWEBP_URL') ?: 'http://127.0.0.1:8080';
    $token = getenv('TOWEBP_TOKEN') ?: fail('TOWEBP_TOKEN is not set');
    $headers = [];
    $curl = curl_init("$url/convert");
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => $fields,
        CURLOPT_HTTPHEADER => ["Authorization: Bearer $token"],
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 120,
        CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$headers): int {
            $header = explode(':', $line, 2);
            if (count($header) === 2) {
                $headers[strtolower($header[0])] = trim($header[1]);
            }
            return strlen($line);
        },
    ]);
    $body = curl_exec($curl);
    if ($body === false) {
        fail(curl_error($curl));
    }
    return [curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $headers, $body];
}

if ($argc < 3) {
    fail('usage: php convert.php PICTURE WEBP [NAME=VALUE ...]');
}
[, $picture, $webp] = $argv;
$ending = strtolower(pathinfo($picture, PATHINFO_EXTENSION));
$mediaType = MEDIA_TYPES[$ending] ?? fail("$picture: not a name of a PNG, JPEG, GIF or BMP");
is_readable($picture) || fail("$picture cannot be read");

$fields = [];
foreach (array_slice($argv, 3) as $argument) {
    [$name, $value] = explode('=', $argument, 2) + [1 => ''];
    $fields[$name] = $value;
}
$fields['file'] = new CURLFile($picture, $mediaType);

[$status, $headers, $body] = send($fields);
$wait = (int) ($headers['retry-after'] ?? MOST_WAITING + 1);
if ($wait <= MOST_WAITING) {
    sleep($wait);
    [$status, $headers, $body] = send($fields);
}
if (isset($headers['x-towebp-warning'])) {
    fwrite(STDERR, $headers['x-towebp-warning'] . "\n");
}
if ($status !== 200) {
    $problem = json_decode($body, true);
    fail($problem ? "{$problem['title']}: {$problem['detail']}" : "The server answered $status");
}
file_put_contents($webp, $body) === strlen($body) || fail("$webp cannot be written");
