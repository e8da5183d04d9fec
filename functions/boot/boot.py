#!/usr/bin/env python3
"""An http-mode process that listens only after BOOT_MS milliseconds (400): to see what calls from zero do meanwhile."""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body are sent together

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = f"pid {os.getpid()}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024


print("started", file=sys.stderr, flush=True)
time.sleep(int(os.environ.get("BOOT_MS", "400")) / 1000)
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
