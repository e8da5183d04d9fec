#include "model/settings.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace orla::model {
namespace {

using enum SettingType;
using enum Presence;

constexpr SettingSection kSections[] = {
    {"fleet", "[fleet]", "The fleet as a whole."},
    {"site", "[[site]]", "A place. Nodes of one site are near each other, sites are apart."},
    {"node", "[[node]]", "One `orla` process. Exactly one node is the cloud."},
    {"metric", "[[metric]]",
     "A measured quantity. Samples of metrics that are not declared are counted as `unmatched` and go nowhere."},
    {"input", "[[input]]",
     "A way in, at an edge. Without `kind` it is a CSV replay when `path` is not empty, else a generator: with "
     "`path = \"${FILE:-}\"` and a `generator`, one fleet file serves both. With `kind = \"push\"` the edge takes "
     "InfluxDB line protocol over HTTP (docs/api.md); such an input is live and never ends by itself."},
    {"input.time", "time = { ... } in [[input]]",
     "Which column of a mapped CSV file is the time, and how it is written."},
    {"input.generator", "generator = { ... } in [[input]]",
     "Smart-plug data made up after the DEBS 2014 month: paired `work` and `load` rows, very unequal houses, day "
     "profiles, repeated and swapped rows. The same seed gives the same rows on every machine."},
    {"rollup", "[[rollup]]",
     "What is kept: samples of a metric, pooled by labels (merge), or one value per group computed across the groups "
     "of another rollup (`across`)."},
    {"forecast", "[[forecast]]", "Load forecasts of rollups, made at the cloud when a step is published."},
    {"function", "[[function]]",
     "A function that a node deploys at its start: made when it is not there, changed when it differs "
     "(docs/functions.md)."},
    {"limits", "[limits]",
     "Every queue and table is bounded. What happens at a bound is said with it; nothing is dropped uncounted."},
};

constexpr Setting kSettings[] = {
    // --- [fleet]
    {"fleet", "name", kName, kRequired, "", "", "", "Names the fleet on pages and in logs.", "name = \"smart-grid\""},
    {"fleet", "zone", kZone, kOptional, "", "UTC", "",
     "Days, weeks and months are those of this time zone; windows shorter than a day start from its midnights.",
     "zone = \"Europe/Berlin\""},
    {"fleet", "idle_after", kDuration, kOptional, "", "5m", "1s..30d",
     "A series without samples for so long, on its input's clock, no longer holds publication; neither does a silent "
     "edge at the cloud. An input replayed at speed 0 has no clock: its series never become idle.",
     "idle_after = \"10m\""},

    // --- [[site]]
    {"site", "name", kName, kRequired, "", "", "", "Unique among the sites.", "name = \"darmstadt\""},
    {"site", "location", kLocation, kOptional, "degrees", "", "", "Latitude (-90..90) and longitude (-180..180).",
     "location = [49.87, 8.65]"},

    // --- [[node]]
    {"node", "name", kName, kRequired, "", "", "", "Unique among the nodes; `orla node FLEET NAME` starts it.",
     "name = \"edge-1\""},
    {"node", "layer", kChoice, kRequired, "", "", "edge | aggregator | cloud",
     "Edges read inputs, aggregators merge what comes from edges, the cloud keeps the result.", "layer = \"edge\""},
    {"node", "site", kName, kOptional, "", "", "", "The place of the node, one of the [[site]]s.",
     "site = \"darmstadt\""},
    {"node", "listen", kAddress, kOptional, "", "", "",
     "gRPC address for children; needed by every node that is a parent. Port 0 takes a free one. Loopback only, until "
     "there is TLS.",
     "listen = \"127.0.0.1:7411\""},
    {"node", "http", kAddress, kOptional, "", "", "",
     "Address of the status page, the API and the metrics; without it the node serves none. Loopback only.",
     "http = \"127.0.0.1:8411\""},
    {"node", "parents", kParents, kOptional, "", "", "0..64",
     "Nodes of the layer above in order of preference. A list inside the list is a group over which children spread "
     "evenly. Needed by edges and aggregators, refused at the cloud.",
     "parents = [[\"agg-1\", \"agg-2\"], \"cloud\"]"},
    {"node", "durability", kChoice, kOptional, "", "disk", "disk | memory",
     "Of an edge: `disk` commits samples before they are acknowledged and survives SIGKILL alone; `memory` leaves "
     "nothing on disk and acknowledges what the cloud has.",
     "durability = \"memory\""},
    {"node", "fsync", kText, kOptional, "", "on", "2..16",
     "Of an edge that keeps its state on disk: when a commit has to survive a loss of power. `on`: before it is "
     "acknowledged. A duration of 1ms to 1m: at most so much later. `off`: when the system likes. A commit survives "
     "SIGKILL in any case. After a loss of power that may have taken some, the edge opens a new epoch.",
     "fsync = \"500ms\""},
    {"node", "outbox_full", kChoice, kOptional, "", "block", "block | reject | drop_oldest",
     "Of an edge whose outbox has reached `outbox_bytes`: `block` stops reading inputs (pushes are answered 503); "
     "`reject` reads on and drops what comes in (reason `outbox_full`; pushes are answered 429); `drop_oldest` drops "
     "the oldest chunks the cloud has not acknowledged (reason `drop_oldest`). What is dropped is counted, and the "
     "cloud is told.",
     "outbox_full = \"drop_oldest\""},
    {"node", "shards", kInteger, kOptional, "shards", "1", "1..64",
     "Of an edge: how many threads take samples, each those of series of its own. Results are the same whatever it is, "
     "and it may be another after a restart. One takes some 100 million samples a second in any order, and a thousand "
     "million in runs: more pay on a machine whose processors the inputs leave idle.",
     "shards = 2"},

    {"node", "gateway", kAddress, kOptional, "", "", "",
     "Address of the gateway of functions, which the node hosts then (docs/functions.md). Loopback only, until there "
     "is "
     "TLS.",
     "gateway = \"127.0.0.1:8080\""},
    {"node", "gateway_metrics", kAddress, kOptional, "", "", "",
     "A second address for `/metrics` and `/healthz`, where tools made for OpenFaaS look for them.",
     "gateway_metrics = \"127.0.0.1:8082\""},
    {"node", "gateway_auth", kText, kOptional, "", "", "1..4096",
     "Folder with the files `basic-auth-user` and `basic-auth-password`: the system API and the page then ask for "
     "them. A "
     "relative path starts from the fleet file's folder.",
     "gateway_auth = \"secrets\""},
    {"node", "images", kText, kOptional, "", "", "1..4096",
     "Folder under which the images of functions lie; without one only `native/...` can be deployed. A relative path "
     "starts from the fleet file's folder.",
     "images = \"functions\""},
    {"node", "wasmtime", kText, kOptional, "", "", "1..4096",
     "The file `libwasmtime.so` (50.0.1) that WebAssembly functions run in; without one it is looked for beside the "
     "program, in `../lib` and in `../lib/orla`. A relative path starts from the fleet file's folder.",
     "wasmtime = \"/opt/wasmtime/libwasmtime.so\""},
    {"node", "processes", kBoolean, kOptional, "", "false", "",
     "Whether functions may be executables of this machine: who can deploy then runs code as this user.",
     "processes = true"},
    {"node", "namespaces", kNames, kOptional, "", "", "0..1000", "Namespaces of functions beside `openfaas-fn`.",
     "namespaces = [\"dev\"]"},
    {"node", "callbacks_allowed", kTexts, kOptional, "", "", "0..1000",
     "Addresses and networks that results of calls made later may be sent to though they are loopback, private or "
     "link-local.",
     "callbacks_allowed = [\"127.0.0.1\", \"10.0.0.0/8\"]"},
    {"node", "upstream_timeout", kDuration, kOptional, "", "60s", "1ms..1d",
     "How long the gateway waits for a function's answer.", "upstream_timeout = \"2m\""},
    {"node", "drain_notice", kDuration, kOptional, "", "500ms", "0s..1h",
     "At its end the gateway still takes calls for so long, while /healthz tells balancers to go elsewhere.",
     "drain_notice = \"10s\""},
    {"node", "drain_timeout", kDuration, kOptional, "", "30s", "0s..1h",
     "How long running calls may take to finish after that.", "drain_timeout = \"2m\""},

    // --- [[metric]]
    {"metric", "name", kName, kRequired, "", "", "",
     "Unique among the metrics; `load` and `work` are those of DEBS 2014.", "name = \"load\""},
    {"metric", "unit", kText, kOptional, "", "", "0..32", "Shown with values.", "unit = \"W\""},
    {"metric", "decimals", kInteger, kOptional, "digits", "3", "0..15",
     "Digits after the decimal point up to which sums are fast. Sums are exact whatever it is.", "decimals = 3"},
    {"metric", "disorder", kDuration, kOptional, "", "0s", "0s..30d",
     "How far behind the newest sample of their series others usually still come: publication waits that long.",
     "disorder = \"30s\""},
    {"metric", "allowed_lateness", kDuration, kOptional, "", "1h", "0s..366d",
     "A sample further behind the newest one of its series is `late` and not counted; one behind by less corrects what "
     "was published.",
     "allowed_lateness = \"1h\""},

    // --- [[input]]
    {"input", "node", kName, kRequired, "", "", "", "The edge that reads it.", "node = \"edge-1\""},
    {"input", "kind", kChoice, kOptional, "", "", "csv | generator | push",
     "`csv` when `path` is not empty, else `generator`, unless said here. `push`: what senders write to `/write` and "
     "`/api/v2/write` of the edge's `http` address; one per edge.",
     "kind = \"csv\""},
    {"input", "path", kText, kOptional, "", "", "0..4096",
     "The CSV file, plain, .gz or .zst. A relative path starts from the fleet file's folder; if there is no such file, "
     "from the working directory.",
     "path = \"${ORLA_DEBS2014:-data/plugs.csv.gz}\""},
    {"input", "schema", kChoice, kOptional, "", "debs2014", "debs2014 | mapping",
     "`debs2014`: seven columns without a header, id, timestamp (unix seconds), value, property (0 = metric work, 1 = "
     "load), plug, household, house. `mapping`: as `time`, `labels` and `values` say.",
     "schema = \"mapping\""},
    {"input", "speed", kNumber, kOptional, "seconds per second", "0", "0..1000000000",
     "How many seconds of the data pass in one second. 0 is as fast as possible.", "speed = 5000"},
    {"input", "select", kSelection, kOptional, "", "", "0..16",
     "Takes only rows whose labels have these values; the others are not this input's and are not counted. A value, a "
     "list, or a range of whole numbers as text.",
     "select = { house = \"0..9\", household = [0, 2] }"},
    {"input", "max_jump", kDuration, kOptional, "", "0s", "0s..36500d",
     "A sample further ahead of the newest of its series is held until three in a row agree; else it is rejected. 0s "
     "is "
     "off.",
     "max_jump = \"7d\""},
    {"input", "future", kDuration, kOptional, "", "10m", "0s..36500d",
     "Live inputs (push): a sample further ahead of the node's clock is rejected (reason `future`). 0s is off, and so "
     "is "
     "a clock that says it is before this program was built.",
     "future = \"10m\""},
    {"input", "idle_after", kDuration, kOptional, "", "", "1s..30d",
     "As in [fleet], for this input; that one's by default.", "idle_after = \"1m\""},
    {"input", "metrics", kNames, kOptional, "", "", "1..4096",
     "Push: the metrics it may bring, all of the fleet by default; samples of others are `unmatched`. `--verify` "
     "cannot "
     "compare their rollups, since what was pushed cannot be read again.",
     "metrics = [\"cpu_usage_user\", \"cpu_usage_system\"]"},
    {"input", "generator", kTable, kOptional, "", "", "", "Settings of a generator, see below.",
     "generator = { houses = 10, for = \"1h\" }"},
    {"input", "time", kTable, kOptional, "", "", "", "Schema mapping: the time column, see below. Needed there.",
     "time = { column = \"timestamp\", format = \"unix\" }"},
    {"input", "labels", kColumns, kOptional, "", "", "0..32",
     "Schema mapping: label = column. A column is a name of the header line or a number, from 1.",
     "labels = { house = \"house_id\", plug = 7 }"},
    {"input", "constants", kConstants, kOptional, "", "", "0..32",
     "Schema mapping: labels that are the same in all rows.", "constants = { house = \"0\" }"},
    {"input", "values", kColumns, kOptional, "", "", "0..256",
     "Schema mapping: metric = column; each gives one sample per row. Needed there.", "values = { load = \"w1\" }"},
    {"input", "header", kBoolean, kOptional, "", "true", "",
     "Schema mapping: the first line names the columns. Without one, columns are numbers.", "header = false"},
    {"input", "delimiter", kCharacter, kOptional, "", ",", "", "Schema mapping: what separates columns.",
     "delimiter = \";\""},
    {"input", "decimal_mark", kChoice, kOptional, "", ".", ". | ,", "Schema mapping: the decimal mark of values.",
     "decimal_mark = \",\""},
    {"input", "missing", kTexts, kOptional, "", "", "0..32",
     "Schema mapping: cells that mean \"no value\"; they are skipped and not counted.",
     "missing = [\"\", \"NA\", \"-200\"]"},

    // --- time of [[input]]
    {"input.time", "column", kText, kRequired, "", "", "1..256", "Name or number of the column.",
     "column = \"timestamp\""},
    {"input.time", "format", kText, kOptional, "", "rfc3339", "1..64",
     "unix, unix_ms, unix_us, unix_ns (whole or decimal numbers since 1970), rfc3339, or a pattern of strptime's: %Y "
     "%m "
     "%d %H %M %S, %E*S with a fraction, %z an offset.",
     "format = \"%d/%m/%Y %H:%M:%S\""},
    {"input.time", "zone", kZone, kOptional, "", "", "", "Of times without an offset; [fleet] zone by default.",
     "zone = \"Europe/Berlin\""},

    // --- generator of [[input]]
    {"input.generator", "houses", kInteger, kOptional, "houses", "40", "1..100000", "How many houses there are.",
     "houses = 10"},
    {"input.generator", "seed", kInteger, kOptional, "", "1", "0..9223372036854775807", "Another seed, other rows.",
     "seed = 7"},
    {"input.generator", "start", kTime, kOptional, "", "2013-09-01T00:00:00+02:00", "",
     "Time of the first row; without an offset in [fleet] zone.", "start = 2013-09-01T00:00:00+02:00"},
    {"input.generator", "for", kDuration, kRequired, "", "", "1s..3660d", "How much time the rows span.",
     "for = \"1h\""},

    // --- [[rollup]]
    {"rollup", "name", kName, kRequired, "", "", "", "Unique among the rollups.", "name = \"plug_load\""},
    {"rollup", "metric", kName, kOptional, "", "", "", "The metric it reads. Either this or `from`.",
     "metric = \"load\""},
    {"rollup", "from", kName, kOptional, "", "", "", "The rollup it reads. Either this or `metric`.",
     "from = \"plug_load\""},
    {"rollup", "by", kNames, kOptional, "", "", "0..16",
     "One group per combination of these labels; without any, one group in all. With `from`: some of its labels.",
     "by = [\"house\", \"plug\"]"},
    {"rollup", "slice", kDuration, kOptional, "", "1m", "1ms..1d",
     "The shortest time that is kept apart. Divides 24 h, every offset of the zone from UTC, and every window. With "
     "`from`: that rollup's by default, a multiple of it for merge, the same for `across`.",
     "slice = \"1m\""},
    {"rollup", "windows", kWindows, kOptional, "", "", "1..32",
     "A duration below a day steps from local midnight and is cut at the next; \"1d\", \"1w\", \"1mo\" are of the "
     "calendar; \"1h/5m\" or { size, hop } is an hour long and starts every five minutes. By default those of `from`, "
     "else one of the slice's length.",
     "windows = [\"1m\", \"15m\", \"1d\", { size = \"1h\", hop = \"5m\" }]"},
    {"rollup", "across", kChoice, kOptional, "", "", "sum | min | max | mean",
     "Each group of the source with samples in the window gives one value, and this is made of them, at the cloud. "
     "Without it, samples are pooled.",
     "across = \"sum\""},
    {"rollup", "of", kChoice, kOptional, "", "mean", "mean | sum | min | max | last",
     "With `across`: which value a group gives. From a rollup that is `across` itself, its own one is taken.",
     "of = \"mean\""},
    {"rollup", "emit", kDuration, kOptional, "", "0s", "0s..1d",
     "Sends open slices so often, before they are published. 0s is off.", "emit = \"5s\""},
    {"rollup", "keep", kChoice, kOptional, "", "partials", "partials | raw",
     "\"raw\": every accepted sample of the metric is kept at the cloud as well, see `orla query samples`. Only of a "
     "rollup straight from a metric, without `across`.",
     "keep = \"raw\""},
    {"rollup", "quantiles", kBoolean, kOptional, "", "false", "",
     "Adds p50, p90, p99 and p999 of the samples (with `across`, of what the groups give), each within 1/256 of its "
     "value; by the nearest-rank definition. Costs up to some hundred bytes per row that travels.",
     "quantiles = true"},
    {"rollup", "distinct", kNames, kOptional, "", "", "1..16",
     "Adds the number of different combinations of these labels among the series with samples: exact up to 512, then "
     "with a standard error of 1.6 %. Not with `across`.",
     "distinct = [\"plug\"]"},

    // --- [[forecast]]
    {"forecast", "of", kNames, kRequired, "", "", "1..64", "The rollups to forecast.",
     "of = [\"plug_load\", \"house_load\"]"},
    {"forecast", "model", kChoice, kOptional, "", "debs2014", "debs2014",
     "The formula of the DEBS 2014 challenge: the mean of the present step and of the median of the same step on "
     "earlier days, two steps ahead.",
     "model = \"debs2014\""},
    {"forecast", "steps", kDurations, kRequired, "", "", "1..16",
     "Lengths of a step. Each divides 24 h and is a multiple of the rollups' slice.",
     "steps = [\"1m\", \"5m\", \"15m\", \"60m\", \"120m\"]"},

    // --- [[function]]
    {"function", "node", kName, kRequired, "", "", "", "The node that hosts it; it has a `gateway`.",
     "node = \"edge-1\""},
    {"function", "name", kName, kRequired, "", "", "", "Lower-case letters, digits and -; unique on the node.",
     "name = \"echo\""},
    {"function", "namespace", kName, kOptional, "", "openfaas-fn", "", "One of the node's.", "namespace = \"dev\""},
    {"function", "image", kText, kRequired, "", "", "1..4096",
     "`native/NAME`, or a file or folder under the node's `images`.", "image = \"echo.wasm\""},
    {"function", "env_process", kText, kOptional, "", "", "0..4096", "The command of a process, split at spaces.",
     "env_process = \"python3 handler.py\""},
    {"function", "environment", kConstants, kOptional, "", "", "0..256",
     "Variables; those of the watchdog (`mode`, `exec_timeout`, ...) among them.",
     "environment = { exec_timeout = \"5s\" }"},
    {"function", "labels", kConstants, kOptional, "", "", "0..256", "Among them how it is scaled.",
     "labels = { \"com.openfaas.scale.min\" = \"2\" }"},
    {"function", "annotations", kConstants, kOptional, "", "", "0..256", "Kept and shown.",
     "annotations = { topic = \"cron\" }"},
    {"function", "secrets", kNames, kOptional, "", "", "0..256", "Secrets it may read, which the node has already.",
     "secrets = [\"api-key\"]"},
    {"function", "memory", kText, kOptional, "", "", "1..32", "Its limit for each replica.", "memory = \"64Mi\""},
    {"function", "cpu", kText, kOptional, "", "", "1..32", "The same in cores.", "cpu = \"500m\""},

    // --- [limits]
    {"limits", "commit_interval_ms", kInteger, kOptional, "ms", "200", "10..60000",
     "Edges and the cloud commit what came in so often.", "commit_interval_ms = 50"},
    {"limits", "commit_samples", kInteger, kOptional, "samples", "50000000", "1000..100000000",
     "An edge commits earlier once so many samples came in.", "commit_samples = 200000"},
    {"limits", "commit_bytes", kInteger, kOptional, "bytes", "16777216", "65536..1073741824",
     "The cloud commits earlier once so many bytes of frames came in.", "commit_bytes = 4194304"},
    {"limits", "journal_bytes", kInteger, kOptional, "bytes", "67108864", "65536..17179869184",
     "An edge replaces its journal by a snapshot beyond this.", "journal_bytes = 16777216"},
    {"limits", "series", kInteger, kOptional, "series", "1000000", "1..100000000",
     "Series of one edge. Samples of further ones are dropped (reason `series_limit`).", "series = 10000"},
    {"limits", "groups", kInteger, kOptional, "groups", "4000000", "1..400000000",
     "Groups of all rollups at one node. An edge drops the samples of a series all of whose groups do not fit (reason "
     "`group_limit`).",
     "groups = 40000"},
    {"limits", "open_rows", kInteger, kOptional, "rows", "8000000", "1000..1000000000",
     "Partials of slices not yet sealed at one edge. Beyond it the next commit seals them all, published or not.",
     "open_rows = 1000000"},
    {"limits", "outbox_bytes", kInteger, kOptional, "bytes", "4294967296", "1048576..1099511627776",
     "What an edge keeps for the cloud; one commit may go beyond it. At the bound, `outbox_full` of the node decides.",
     "outbox_bytes = 1073741824"},
    {"limits", "frame_bytes", kInteger, kOptional, "bytes", "1048576", "4096..16777216",
     "Chunks are put together into messages of about this size.", "frame_bytes = 262144"},
    {"limits", "credit_bytes", kInteger, kOptional, "bytes", "16777216", "65536..4294967296",
     "What a child may have sent and not yet had acknowledged.", "credit_bytes = 4194304"},
    {"limits", "heartbeat_ms", kInteger, kOptional, "ms", "500", "10..60000", "Neighbours say so often that they live.",
     "heartbeat_ms = 200"},
    {"limits", "parent_timeout_ms", kInteger, kOptional, "ms", "2000", "50..600000",
     "A neighbour silent for so long counts as gone. More than heartbeat_ms.", "parent_timeout_ms = 5000"},
    {"limits", "reconnect_min_ms", kInteger, kOptional, "ms", "100", "1..60000",
     "The first wait before a parent is tried again; it doubles, with jitter.", "reconnect_min_ms = 50"},
    {"limits", "reconnect_max_ms", kInteger, kOptional, "ms", "5000", "1..600000",
     "The longest wait before a parent is tried again. At least reconnect_min_ms.", "reconnect_max_ms = 1000"},
    {"limits", "parked_rows", kInteger, kOptional, "rows", "1000000", "0..1000000000",
     "Partials of rollups the cloud does not know yet, kept until it does. Beyond it frames with such are refused.",
     "parked_rows = 100000"},
    {"limits", "cached_window_rows", kInteger, kOptional, "rows", "2000000", "1000..1000000000",
     "Windows the cloud holds in memory; others are read back when a correction comes.", "cached_window_rows = 500000"},
    {"limits", "hopping_sums", kInteger, kOptional, "sums", "2000000", "1..1000000000",
     "Sums the cloud keeps in memory for the next hopping windows, 2 sqrt(size/hop) of each group; beyond it, they are "
     "made from the store at each hop.",
     "hopping_sums = 500000"},
    {"limits", "producers", kInteger, kOptional, "producers", "10000", "0..10000000",
     "Senders whose sequence numbers one edge keeps, so that what they send again counts once. A new one beyond it is "
     "answered 429; none is ever forgotten.",
     "producers = 200"},
    {"limits", "push_commit_ms", kInteger, kOptional, "ms", "20", "0..60000",
     "A push waits at most so long for others to share its commit.", "push_commit_ms = 5"},
    {"limits", "push_timeout_ms", kInteger, kOptional, "ms", "10000", "10..3600000",
     "A push that is not durable by then is answered 503: what became of it is not known, and it has to be sent again.",
     "push_timeout_ms = 30000"},
    {"limits", "push_body_bytes", kInteger, kOptional, "bytes", "8388608", "1024..268435456",
     "The body of one push, as sent. Larger ones are answered 413.", "push_body_bytes = 1048576"},
    {"limits", "push_unpacked_bytes", kInteger, kOptional, "bytes", "33554432", "1024..1073741824",
     "The same after decompression.", "push_unpacked_bytes = 4194304"},
    {"limits", "push_samples", kInteger, kOptional, "samples", "500000", "1..16000000",
     "Field values of one push, which are kept in one commit. Larger ones are answered 413.", "push_samples = 50000"},
    {"limits", "push_waiting_bytes", kInteger, kOptional, "bytes", "134217728", "1024..17179869184",
     "Pushes that were taken and are not durable yet. Further ones are answered 429.", "push_waiting_bytes = 16777216"},
    {"limits", "http_connections", kInteger, kOptional, "connections", "256", "1..65536",
     "Further HTTP connections are answered 503.", "http_connections = 16"},
    {"limits", "http_timeout_ms", kInteger, kOptional, "ms", "30000", "100..3600000",
     "Time for one HTTP request or answer; then the connection is closed.", "http_timeout_ms = 10000"},
    {"limits", "gateway_connections", kInteger, kOptional, "connections", "4096", "1..1000000",
     "Further connections to a gateway are answered 503.", "gateway_connections = 500"},
    {"limits", "gateway_header_bytes", kInteger, kOptional, "bytes", "32768", "1024..1048576",
     "Request line and headers of a call. Larger ones are answered 431.", "gateway_header_bytes = 8192"},
    {"limits", "gateway_body_bytes", kInteger, kOptional, "bytes", "104857600", "1024..1099511627776",
     "The body of a call. Larger ones are answered 413.", "gateway_body_bytes = 1048576"},
    {"limits", "gateway_async_body_bytes", kInteger, kOptional, "bytes", "1048576", "1024..268435456",
     "The same of a call that is queued.", "gateway_async_body_bytes = 262144"},
    {"limits", "async_calls", kInteger, kOptional, "calls", "1000000", "0..1000000000",
     "Calls for later that a node keeps, dead letters included. Further ones are answered 429.", "async_calls = 10000"},
    {"limits", "async_bytes", kInteger, kOptional, "bytes", "1073741824", "0..1099511627776",
     "The same in bytes of their bodies and headers.", "async_bytes = 104857600"},
    {"limits", "async_running", kInteger, kOptional, "calls", "128", "1..10000",
     "Calls for later that run at a time at a node; of one function at most half of them.", "async_running = 16"},
    {"limits", "gateway_header_timeout_ms", kInteger, kOptional, "ms", "10000", "10..3600000",
     "Time for the head of a request.", "gateway_header_timeout_ms = 5000"},
    {"limits", "gateway_idle_ms", kInteger, kOptional, "ms", "60000", "10..3600000",
     "A client that sends nothing of a body, or takes nothing of a response, for so long loses its call.",
     "gateway_idle_ms = 10000"},
    {"limits", "functions", kInteger, kOptional, "functions", "20000", "0..1000000",
     "Functions of one node. Further ones are not deployed.", "functions = 100"},
    {"limits", "function_replicas", kInteger, kOptional, "replicas", "20000", "1..1000000",
     "Replicas of all functions of one node.", "function_replicas = 100"},
    {"limits", "running_calls", kInteger, kOptional, "calls", "1024", "1..100000",
     "Calls in functions at a time at one node; each holds a thread.", "running_calls = 64"},
    {"limits", "waiting_calls", kInteger, kOptional, "calls", "10000", "0..1000000",
     "Calls held for a start or for room. Further ones are answered 429.", "waiting_calls = 1000"},
    {"limits", "drain_timeout_ms", kInteger, kOptional, "ms", "120000", "100..86400000",
     "How long `orla up` waits, after the inputs ended, for everything to reach the cloud (--drain-timeout).",
     "drain_timeout_ms = 60000"},
};

}  // namespace

std::span<const SettingSection> setting_sections() { return kSections; }
std::span<const Setting> settings() { return kSettings; }

const Setting* find_setting(std::string_view section, std::string_view key) {
  const auto* found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                   [&](const Setting& s) { return s.section == section && s.key == key; });
  return found == std::end(kSettings) ? nullptr : found;
}

const SettingSection* find_section(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kSections), std::end(kSections), [&](const SettingSection& s) { return s.name == name; });
  return found == std::end(kSections) ? nullptr : found;
}

std::vector<std::string> setting_keys(std::string_view section) {
  std::vector<std::string> keys;
  for (const Setting& setting : kSettings) {
    if (setting.section == section) keys.emplace_back(setting.key);
  }
  return keys;
}

std::vector<std::string> choices_of(const Setting& setting) {
  constexpr std::string_view kBetween = " | ";
  std::vector<std::string> choices;
  std::string_view rest = setting.bounds;
  while (true) {
    const std::size_t end = rest.find(kBetween);
    choices.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return choices;
    rest.remove_prefix(end + kBetween.size());
  }
}

std::string_view type_name(SettingType type) {
  switch (type) {
    case kText:
      return "text";
    case kName:
      return "name";
    case kChoice:
      return "choice";
    case kBoolean:
      return "true or false";
    case kInteger:
      return "whole number";
    case kNumber:
      return "number";
    case kDuration:
      return "duration";
    case kTime:
      return "date and time";
    case kZone:
      return "time zone";
    case kAddress:
      return "address";
    case kCharacter:
      return "character";
    case kTexts:
      return "list of texts";
    case kNames:
      return "list of names";
    case kParents:
      return "list of names or groups";
    case kLocation:
      return "[latitude, longitude]";
    case kDurations:
      return "list of durations";
    case kWindows:
      return "list of windows";
    case kSelection:
      return "table of label values";
    case kColumns:
      return "table of columns";
    case kConstants:
      return "table of texts";
    case kTable:
      return "table";
  }
  return "";
}

std::map<std::string, std::int64_t> default_limits() {
  std::map<std::string, std::int64_t> limits;
  for (const Setting& setting : kSettings) {
    if (setting.section != "limits") continue;
    std::int64_t value = 0;
    std::from_chars(setting.fallback.data(), setting.fallback.data() + setting.fallback.size(), value);
    limits.emplace(setting.key, value);
  }
  return limits;
}

}  // namespace orla::model
