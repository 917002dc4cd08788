#!/usr/bin/env python3
"""Converts a picture to WebP: convert.py PICTURE WEBP [NAME=VALUE ...]

The token is in TOWEBP_TOKEN, the server in TOWEBP_URL (default http://127.0.0.1:8080).
"""

import os
import sys
import time
from pathlib import Path

import requests

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
}
MOST_WAITING = 60  # seconds


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    picture, webp = Path(sys.argv[1]), Path(sys.argv[2])
    parameters = dict(argument.partition("=")[::2] for argument in sys.argv[3:])
    media_type = MEDIA_TYPES.get(picture.suffix.lower())
    if media_type is None:
        sys.exit(f"{picture}: not a name of a PNG, JPEG, GIF or BMP")
    webp.write_bytes(convert(picture.read_bytes(), media_type, parameters))


def convert(picture, media_type, parameters):
    """The WebP of a picture; ends the program with the server's words if there is none."""
    url = os.environ.get("TOWEBP_URL", "http://127.0.0.1:8080")
    token = os.environ["TOWEBP_TOKEN"]
    for is_last in (False, True):
        response = requests.post(
            f"{url}/convert",
            params=parameters,
            data=picture,
            headers={"Authorization": f"Bearer {token}", "Content-Type": media_type},
            timeout=120,
        )
        wait = response.headers.get("Retry-After")
        if wait is None or is_last or int(wait) > MOST_WAITING:
            break
        time.sleep(int(wait))
    if "X-Towebp-Warning" in response.headers:
        print(response.headers["X-Towebp-Warning"], file=sys.stderr)
    if response.status_code == 200:
        return response.content
    if response.headers.get("Content-Type") == "application/problem+json":
        problem = response.json()
        sys.exit(f"{problem['title']}: {problem['detail']}")
    sys.exit(f"The server answered {response.status_code}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, requests.RequestException) as error:
        sys.exit(str(error))
    except KeyError as error:
        sys.exit(f"{error} is not set")
