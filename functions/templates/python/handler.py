"""The function __NAME__: handle() runs once per request."""


def handle(method, path, query, headers, body):
    """Gives (status, headers, body). `body` is bytes in and out."""
    name = body.decode("utf-8", "replace").strip() or "world"
    return 200, {"Content-Type": "text/plain"}, f"Hello, {name}!\n".encode()
