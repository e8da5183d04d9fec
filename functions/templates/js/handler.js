// The function __NAME__: runs once per request. `body` is a Buffer.
module.exports = async ({ method, path, query, headers, body }) => {
  const name = body.toString().trim() || "world";
  return { status: 200, headers: { "Content-Type": "text/plain" }, body: `Hello, ${name}!\n` };
};
