"""Converts a picture by a client that openapi-python-client has made: as the body, then as a form.

    convert.py FOLDER URL TOKEN PICTURE RAW FORM

FOLDER holds the package `generated`. RAW and FORM are the files to write.
"""

import sys
from io import BytesIO
from pathlib import Path

folder, url, token, picture, raw, form = sys.argv[1:]
sys.path.insert(0, folder)

from generated import AuthenticatedClient
from generated.api.conversion import convert
from generated.models import ConvertFilesBody
from generated.types import File

client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)


def save(path, body):
    answer = convert.sync_detailed(client=client, body=body, width=40)
    if answer.status_code != 200:
        sys.exit(f"{answer.status_code}: {answer.content.decode()}")
    Path(path).write_bytes(answer.parsed.payload.read())


save(raw, File(BytesIO(Path(picture).read_bytes())))
file = File(BytesIO(Path(picture).read_bytes()), file_name="picture.png", mime_type="image/png")
save(form, ConvertFilesBody(file=file))
