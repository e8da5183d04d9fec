// The echo and the sentiment function on workerd.
import { answerTo } from "./sentiment.mjs";

export default {
  async fetch(request) {
    const path = new URL(request.url).pathname;
    if (path === "/function/echo") {
      return new Response(await request.arrayBuffer(), { headers: { "Content-Type": "text/plain" } });
    }
    if (path !== "/function/sentiment") return new Response("", { status: 404 });
    const text = answerTo(await request.arrayBuffer());
    if (text === null) return new Response("", { status: 400 });
    return new Response(text, { headers: { "Content-Type": "application/json" } });
  },
};
