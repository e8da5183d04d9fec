// The echo and the sentiment function on Node's own HTTP server. Says its port on standard output.
import { createServer } from "node:http";
import { answerTo } from "./sentiment.mjs";

createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const body = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    if (request.url === "/function/echo") {
      response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": body.length });
      response.end(body);
      return;
    }
    const text = request.url === "/function/sentiment" ? answerTo(body) : null;
    if (text === null) {
      response.writeHead(request.url === "/function/sentiment" ? 400 : 404);
      response.end();
      return;
    }
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
}).listen(0, "127.0.0.1", function () {
  console.log(this.address().port);
});
