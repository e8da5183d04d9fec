using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "functions", worker = .functions)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "functions")]
);

const functions :Workerd.Worker = (
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "sentiment.mjs", esModule = embed "sentiment.mjs"),
    (name = "lexicon.mjs", esModule = embed "lexicon.mjs"),
  ],
  compatibilityDate = "2026-11-01",
);
