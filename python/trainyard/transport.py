"""HTTP to a server: over TCP, TLS, or the socket in its folder."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from typing import Any, Dict, Mapping, Optional, Tuple
from urllib.parse import urlencode, urlsplit

from .errors import Error, Unreachable

TIMEOUT_SECONDS = 60.0


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _kept_login() -> Tuple[Optional[str], Optional[str]]:
    """What `trainyard login` keeps."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    try:
        with open(os.path.join(config, "trainyard", "login"), encoding="utf-8") as file:
            kept = json.load(file)
        return kept.get("url"), kept.get("token")
    except (OSError, ValueError):
        return None, None


class Transport:
    """Knows where the server is and who asks; a connection per request, so threads may share it."""

    def __init__(self, url: Optional[str], token: Optional[str], directory: Optional[str]) -> None:
        self._socket: Optional[str] = None
        if url is None and directory is None:
            url = os.environ.get("TRAINYARD_URL") or None
            directory = None if url else os.environ.get("TRAINYARD_DIR") or None
            if url and token is None:
                token = os.environ.get("TRAINYARD_TOKEN") or None
        if url is None and directory is None:
            url, kept = _kept_login()
            token = token or kept
        if directory is not None:
            self._socket = os.path.join(directory, "control.sock")
            self.url = "http://localhost"
        elif url is not None:
            self.url = url.rstrip("/")
        else:
            raise ValueError("which server? Give url= and token=, or directory= on its machine, or set TRAINYARD_URL and "
                             "TRAINYARD_TOKEN, or sign in once with: trainyard login URL")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is no address of a server; it looks like http://127.0.0.1:7070")
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._token = token

    @property
    def name(self) -> str:
        """How to call the server in messages."""
        return self._socket or self.url

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._socket:
            return _SocketConnection(self._socket, timeout)
        if self._tls:
            context = ssl.create_default_context(cafile=os.environ.get("TRAINYARD_CA") or None)
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def open(self, method: str, path: str, body: Optional[bytes] = None, headers: Optional[Mapping[str, str]] = None,
             timeout: float = TIMEOUT_SECONDS) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request; the answer is not read yet.  Close the connection.  Raises Error for what is refused."""
        all_headers: Dict[str, str] = {"Accept": "application/json", **(headers or {})}
        if self._token:
            all_headers["Authorization"] = "Bearer " + self._token
        connection = self._connect(timeout)
        try:
            connection.request(method, path, body, all_headers)
            response = connection.getresponse()
            if response.status >= 400:
                text = response.read()
                try:
                    problem = json.loads(text)
                except ValueError:
                    problem = {"detail": text.decode("utf-8", "replace")[:300]}
                raise Error(response.status, problem)
            return connection, response
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(f"no server answers at {self.name}: {error}") from error
        except Error:
            connection.close()
            raise

    def call(self, method: str, path: str, body: Any = None, query: Optional[Mapping[str, Any]] = None,
             headers: Optional[Mapping[str, str]] = None, timeout: float = TIMEOUT_SECONDS) -> Any:
        """One request with a JSON body and a JSON answer (None when there is none)."""
        wanted = {name: value for name, value in (query or {}).items() if value is not None}
        if wanted:
            path += "?" + urlencode(wanted)
        data = None
        all_headers = dict(headers or {})
        if body is not None:
            data = json.dumps(body).encode()
            all_headers["Content-Type"] = "application/json"
        connection, response = self.open(method, path, data, all_headers, timeout)
        try:
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the answer of {self.name} broke off: {error}") from error
        finally:
            connection.close()
        return json.loads(text) if text else None
