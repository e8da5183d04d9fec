// Starts the function: an HTTP server on 127.0.0.1:$PORT that hands requests to handler.js. Needs no change.
const http = require("http");
const handle = require("./handler.js");

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", async () => {
    const at = (request.url + "?").indexOf("?");
    try {
      const { status = 200, headers = {}, body = "" } = await handle({
        method: request.method,
        path: request.url.slice(0, at),
        query: request.url.slice(at + 1),
        headers: request.headers,
        body: Buffer.concat(pieces),
      });
      response.writeHead(status, headers);
      response.end(body);
    } catch (error) {
      console.error(error); // into the function's log
      response.writeHead(500, { "Content-Type": "text/plain" });
      response.end("the handler failed; see its log\n");
    }
  });
});
server.keepAliveTimeout = 600000;
server.listen(Number(process.env.PORT), "127.0.0.1");
process.on("SIGTERM", () => server.close(() => process.exit(0)));
