#!/usr/bin/env python3
"""The text in the body, its polarity and subjectivity by TextBlob as JSON. An http-mode process function."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from textblob import TextBlob

MOST_BYTES = 16 << 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body are sent together

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            return self.rfile.read(length) if length <= MOST_BYTES else None
        out = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            if len(out) + size > MOST_BYTES:
                return None
            out += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return out

    def do_POST(self):
        body = self.body()
        if body is None:
            self.close_connection = True
            self.answer(413, "text/plain", "the text is longer than 16 MiB\n")
            return
        try:
            polarity, subjectivity = TextBlob(body.decode()).sentiment
        except UnicodeDecodeError:
            self.answer(400, "text/plain", "the text is not UTF-8\n")
            return
        text = json.dumps({"polarity": float(polarity), "subjectivity": float(subjectivity)})
        self.answer(200, "application/json", text + "\n")

    do_GET = do_PUT = do_POST

    def answer(self, status, content_type, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


TextBlob("warm").sentiment  # the lexicon is loaded before the first call
class Server(ThreadingHTTPServer):
    request_queue_size = 256  # many calls may come at once


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
