"""Starts the function: an HTTP server on 127.0.0.1:$PORT that hands requests to handler.py. Needs no change."""

import os
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from handler import handle


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body are sent together

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        out = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return out

    def answer(self):
        path, _, query = self.path.partition("?")
        try:
            status, headers, body = handle(self.command, path, query, self.headers, self.body())
        except Exception:
            traceback.print_exc()  # into the function's log
            status, headers, body = 500, {"Content-Type": "text/plain"}, b"the handler failed; see its log\n"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256  # many calls may come at once


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
