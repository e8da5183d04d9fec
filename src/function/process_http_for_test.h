// Functions of mode http for tests: a server whose answers a test writes byte by byte.
#pragma once

#include <string>
#include <utility>

#include "function/process_for_test.h"

namespace orla::function {

// A server on raw sockets, so that a test says each byte of an answer. `answer(method, target, headers, body, send)`
// gets the whole request; a thread for each connection; /ID counts requests of a connection.
inline constexpr char kServer[] = R"(
import os, signal, socket, sys, threading, time
def serve(c):
    data = b''
    count = 0
    while True:
        while b'\r\n\r\n' not in data:
            more = c.recv(65536)
            if not more: return c.close()
            data += more
        head, data = data.split(b'\r\n\r\n', 1)
        lines = head.decode().split('\r\n')
        method, target, _ = lines[0].split(' ')
        headers = {}
        for line in lines[1:]:
            name, value = line.split(': ', 1)
            headers[name.lower()] = value
        body = b''
        if 'content-length' in headers:
            n = int(headers['content-length'])
            while len(data) < n: data += c.recv(65536)
            body, data = data[:n], data[n:]
        elif 'chunked' in headers.get('transfer-encoding', '') and target != '/early':
            while True:
                while b'\r\n' not in data: data += c.recv(65536)
                size, data = data.split(b'\r\n', 1)
                n = int(size, 16)
                while len(data) < n + 2: data += c.recv(65536)
                body += data[:n]
                data = data[n + 2:]
                if n == 0: break
        count += 1
        if answer(c, method, target, headers, body, count) is False: return c.close()
def ok(c, body, extra=''):
    c.sendall(('HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n' % (len(body), extra)).encode() + body)
def run():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', int(os.environ['PORT'])))
    s.listen(64)
    while True:
        c, _ = s.accept()
        threading.Thread(target=serve, args=(c,), daemon=True).start()
)";

struct HttpFunction : ProcessFunctionForTest {
  // `answer`: the body of that function, indented by four.
  explicit HttpFunction(const std::string& answer, const std::string& before = "") {
    spec.options.mode = WatchdogMode::kHttp;
    python(std::string(kServer) + "def answer(c, method, target, headers, body, count):\n" + answer + "\n" + before +
           "\nrun()\n");
  }
  std::pair<CallResult, std::string> get(const std::string& path, std::string body = "") {
    CallForTest call(std::move(body));
    call.head.method = call.whole.whole()->empty() ? "GET" : "POST";
    call.head.path = path;
    CallResult result = call.run(*instance);
    return {std::move(result), call.response.body()};
  }
};

}  // namespace orla::function
