"""Writes the client as a wheel: wheel.py VERSION FOLDER.  The same sources give the same bytes."""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

version, folder = sys.argv[1], Path(sys.argv[2])
source = Path(__file__).parent
about = f"trainyard-{version}.dist-info"
files = {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted((source / "trainyard").iterdir()) if path.is_file()}
files[f"{about}/METADATA"] = (
    f"Metadata-Version: 2.1\nName: trainyard\nVersion: {version}\nSummary: Client of Trainyard, training as a service\n"
    "License: Apache-2.0\nRequires-Python: >=3.8\n"
).encode()
files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: trainyard\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


record = f"{about}/RECORD"
files[record] = ("".join(row(name, data) for name, data in files.items()) + f"{record},,\n").encode()
folder.mkdir(parents=True, exist_ok=True)
target = folder / f"trainyard-{version}-py3-none-any.whl"
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, data in files.items():
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o644 << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(info, data)
print(target)
