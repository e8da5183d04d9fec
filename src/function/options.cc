#include "function/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "absl/numeric/int128.h"
#include "base/absl_view.h"
#include "function/retry_policy.h"

namespace orla::function {
namespace {

constexpr std::string_view kScalePrefix = "com.openfaas.scale.";

absl::Status wrong(std::string_view name, std::string_view found, std::string_view expected) {
  return absl::InvalidArgumentError(fmt::format("{} is \"{}\"; expected {}", name, found, expected));
}

// A decimal number without sign or exponent, as an integer over a power of ten.
struct Decimal {
  std::uint64_t digits = 0;
  int after_point = 0;
};

constexpr int kMostDigits = 18;

// Takes the number at the front of `text`; nothing when there is none, or when it has more digits than are computed
// with exactly.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  int significant = 0;
  bool any = false;
  bool point = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (significant > 0 || c != '0') ++significant;
    if (significant > kMostDigits || (point && ++number.after_point > kMostDigits)) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (!any) return std::nullopt;
  text.remove_prefix(at);
  return number;
}

absl::uint128 power_of_ten(int exponent) {
  absl::uint128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// A Kubernetes quantity as digits * 2^binary * 10^decimal.
struct Quantity {
  std::uint64_t digits = 0;
  int binary = 0;
  int decimal = 0;
};

std::optional<Quantity> parse_quantity(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number) return std::nullopt;
  Quantity quantity{.digits = number->digits, .decimal = -number->after_point};
  if (text.empty()) return quantity;
  constexpr std::pair<std::string_view, int> kBinary[] = {{"Ki", 10}, {"Mi", 20}, {"Gi", 30},
                                                          {"Ti", 40}, {"Pi", 50}, {"Ei", 60}};
  constexpr std::pair<std::string_view, int> kDecimal[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"k", 3}, {"M", 6},
                                                           {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
  for (const auto& [suffix, power] : kBinary) {
    if (text == suffix) return quantity.binary = power, quantity;
  }
  for (const auto& [suffix, power] : kDecimal) {
    if (text == suffix) return quantity.decimal += power, quantity;
  }
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || end != text.data() + text.size() || exponent > 18 || exponent < -18) return std::nullopt;
  return quantity.decimal += exponent, quantity;
}

// Reads whole numbers, switches and the like out of one of a spec's maps. The first error stays.
class Reader {
 public:
  Reader(const std::map<std::string, std::string>& values, std::string_view what) : values_(values), what_(what) {}

  // An empty value counts as none, as it does for the watchdog.
  std::optional<std::string_view> text(std::string_view name) const {
    const auto found = values_.find(std::string(name));
    if (found == values_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }

  template <typename Number>
  void number(std::string_view name, Number least, Number most, Number& to) {
    const auto found = text(name);
    if (!found) return;
    Number value{};
    const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), value);
    if (error != std::errc() || end != found->data() + found->size() || !(value >= least && value <= most)) {
      return fail(name, *found, fmt::format("a number from {} to {}", least, most));
    }
    to = value;
  }

  void flag(std::string_view name, bool& to) {
    const auto found = text(name);
    if (!found) return;
    if (*found != "true" && *found != "1" && *found != "false" && *found != "0") {
      return fail(name, *found, "true or false");
    }
    to = *found == "true" || *found == "1";
  }

  void duration(std::string_view name, std::chrono::nanoseconds least, std::chrono::nanoseconds most,
                std::string_view range, std::chrono::nanoseconds& to) {
    const auto found = text(name);
    if (!found) return;
    const auto value = parse_duration(*found);
    if (!value.ok())
      return keep(absl::InvalidArgumentError(fmt::format("{} \"{}\": {}", what_, name, base::message(value.status()))));
    if (*value < least || *value > most) return fail(name, *found, range);
    to = *value;
  }

  template <typename Value>
  void choice(std::string_view name, std::initializer_list<std::pair<std::string_view, Value>> choices, Value& to) {
    const auto found = text(name);
    if (!found) return;
    std::string expected;
    for (const auto& [word, value] : choices) {
      if (word == *found) {
        to = value;
        return;
      }
      expected += fmt::format("{}{}", expected.empty() ? "" : ", ", word);
    }
    fail(name, *found, "one of " + expected);
  }

  void fail(std::string_view name, std::string_view found, std::string_view expected) {
    keep(wrong(fmt::format("{} \"{}\"", what_, name), found, expected));
  }
  const absl::Status& status() const { return status_; }

 private:
  void keep(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const std::map<std::string, std::string>& values_;
  const std::string_view what_;
  absl::Status status_;
};

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// "http://HOST:PORT", maybe with a '/' behind it.
bool is_upstream(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  const std::size_t colon = url.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = url.substr(0, colon);
  const std::string_view port = url.substr(colon + 1);
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return (host == "127.0.0.1" || host == "localhost") && error == std::errc() && end == port.data() + port.size() &&
         number > 0 && number < 65536;
}

absl::Status read_environment(const FunctionSpec& spec, FunctionOptions& options) {
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("environment variable \"{}\": expected a name without '=' and NUL", name));
    }
    if (value.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(fmt::format("environment variable \"{}\": its value holds a NUL", name));
    }
  }
  Reader reader(spec.environment, "environment variable");
  constexpr std::chrono::nanoseconds kNone{0};
  constexpr std::chrono::nanoseconds kLeast{1};
  reader.choice<WatchdogMode>("mode",
                              {{"streaming", WatchdogMode::kStreaming},
                               {"serializing", WatchdogMode::kSerializing},
                               {"http", WatchdogMode::kHttp}},
                              options.mode);
  reader.duration("exec_timeout", kNone, kMaxDuration, "", options.exec_timeout);
  reader.duration("read_timeout", kLeast, kMaxDuration, "more than 0", options.read_timeout);
  reader.duration("write_timeout", kLeast, kMaxDuration, "more than 0", options.write_timeout);
  options.healthcheck_interval = options.write_timeout;
  reader.duration("healthcheck_interval", kLeast, kMaxDuration, "more than 0", options.healthcheck_interval);
  reader.number<std::uint32_t>("max_inflight", 0, 1'000'000, options.max_inflight);
  if (const auto type = reader.text("content_type")) {
    if (!printable(*type)) reader.fail("content_type", *type, "a media type in printable ASCII");
    options.content_type = *type;
  }
  if (const auto url = reader.text("upstream_url")) {
    if (!is_upstream(*url)) reader.fail("upstream_url", *url, "http://127.0.0.1:PORT");
    options.upstream_url = *url;
  }
  if (const auto path = reader.text("ready_path")) {
    if (path->front() != '/' || !printable(*path)) reader.fail("ready_path", *path, "a path that begins with /");
    options.ready_path = *path;
  }
  reader.flag("http_buffer_req_body", options.buffer_request_body);
  reader.flag("prefix_logs", options.prefix_logs);
  reader.number<std::int64_t>("log_buffer_size", -1, 1 << 30, options.log_buffer_bytes);
  if (options.log_buffer_bytes == 0) reader.fail("log_buffer_size", "0", "bytes of a line, or -1 for no limit");
  reader.flag("log_callid", options.log_call_id);
  return reader.status();
}

absl::Status read_scale(const FunctionSpec& spec, ScaleOptions& scale) {
  constexpr std::string_view kKnown[] = {
      "min", "max", "zero", "zero-duration", "type", "target", "target-proportion", "factor", "down.window"};
  for (const auto& [name, value] : spec.labels) {
    if (!name.starts_with(kScalePrefix)) continue;
    if (std::find(std::begin(kKnown), std::end(kKnown), std::string_view(name).substr(kScalePrefix.size())) ==
        std::end(kKnown)) {
      return absl::InvalidArgumentError(fmt::format("label \"{}\" is not known; the known ones are {}{}", name,
                                                    kScalePrefix,
                                                    fmt::join(kKnown, fmt::format(", {}", kScalePrefix))));
    }
  }
  Reader reader(spec.labels, "label");
  const auto label = [](std::string_view name) { return fmt::format("{}{}", kScalePrefix, name); };
  reader.number<std::uint32_t>(label("min"), 0, kMaxReplicas, scale.min);
  scale.min = std::max<std::uint32_t>(scale.min, 1);
  scale.max = std::max(scale.max, scale.min);
  reader.number<std::uint32_t>(label("max"), 1, kMaxReplicas, scale.max);
  if (scale.min > scale.max) {
    reader.fail(label("max"), fmt::format("{}", scale.max), fmt::format("at least {}min, {}", kScalePrefix, scale.min));
  }
  reader.flag(label("zero"), scale.zero);
  reader.duration(label("zero-duration"), std::chrono::nanoseconds(1), kMaxDuration, "more than 0",
                  scale.zero_duration);
  reader.choice<ScaleOptions::Type>(label("type"),
                                    {{"capacity", ScaleOptions::Type::kCapacity},
                                     {"rps", ScaleOptions::Type::kRps},
                                     {"queue", ScaleOptions::Type::kQueue}},
                                    scale.type);
  reader.number<double>(label("target"), 0.001, 1e9, scale.target);
  reader.number<double>(label("target-proportion"), 0.01, 1, scale.target_proportion);
  reader.number<std::uint32_t>(label("factor"), 0, 100, scale.factor);
  reader.duration(label("down.window"), std::chrono::nanoseconds(0), kMaxDownWindow, "at most 5m", scale.down_window);
  return reader.status();
}

absl::Status read_resources(const Resources& resources, std::string_view what, std::optional<std::uint64_t>& memory,
                            std::optional<double>& cpu) {
  if (!resources.memory.empty()) {
    const auto bytes = parse_memory(resources.memory);
    if (!bytes.ok()) return wrong(fmt::format("{}.memory", what), resources.memory, base::message(bytes.status()));
    memory = *bytes;
  }
  if (!resources.cpu.empty()) {
    const auto cores = parse_cpu(resources.cpu);
    if (!cores.ok()) return wrong(fmt::format("{}.cpu", what), resources.cpu, base::message(cores.status()));
    cpu = *cores;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a duration; expected seconds (\"30\") or a Go duration (\"1m30s\", \"250ms\") of at "
                    "most {} h",
                    text, std::chrono::duration_cast<std::chrono::hours>(kMaxDuration).count()));
  };
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"ns", 1},         {"us", 1'000},           {"\u00b5s", 1'000},       {"\u03bcs", 1'000},
      {"ms", 1'000'000}, {"s", 1'000'000'000ull}, {"m", 60'000'000'000ull}, {"h", 3'600'000'000'000ull}};
  constexpr auto kMost = static_cast<std::uint64_t>(kMaxDuration.count());
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty()) return bad();
  if (std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    std::uint64_t seconds = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), seconds).ec != std::errc()) return bad();
    if (seconds > kMost / 1'000'000'000) return bad();
    return std::chrono::seconds(seconds);
  }
  absl::uint128 total = 0;
  while (!rest.empty()) {
    const std::optional<Decimal> number = take_decimal(rest);
    if (!number) return bad();
    std::size_t letters = 0;
    while (letters < rest.size() && rest[letters] != '.' && (rest[letters] < '0' || rest[letters] > '9')) ++letters;
    const std::string_view unit = rest.substr(0, letters);
    const auto* found =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return u.first == unit; });
    if (found == std::end(kUnits)) return bad();
    rest.remove_prefix(letters);
    total += absl::uint128(number->digits) * found->second / power_of_ten(number->after_point);
    if (total > kMost) return bad();
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

absl::StatusOr<std::uint64_t> parse_memory(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const auto bad = [] {
    return absl::InvalidArgumentError("bytes as in \"65536\", \"128Mi\", \"1.5Gi\" or \"1G\", more than 0");
  };
  const std::optional<Quantity> quantity = parse_quantity(text);
  if (!quantity || quantity->digits == 0) return bad();
  // digits < 10^18 and the factors at most 2^60 or 10^36 in all: looked at before they are multiplied.
  const absl::uint128 digits = absl::uint128(quantity->digits) << quantity->binary;
  absl::uint128 bytes = 0;
  if (quantity->decimal >= 0) {
    if (quantity->decimal > 19 || digits > absl::uint128(kMost) / power_of_ten(quantity->decimal)) return bad();
    bytes = digits * power_of_ten(quantity->decimal);
  } else if (quantity->decimal < -37) {
    bytes = 1;
  } else {
    const absl::uint128 divisor = power_of_ten(-quantity->decimal);
    bytes = digits / divisor + (digits % divisor != 0 ? 1 : 0);
  }
  if (bytes > kMost) return bad();
  return static_cast<std::uint64_t>(bytes);
}

absl::StatusOr<double> parse_cpu(std::string_view text) {
  constexpr double kMost = 100'000;
  const auto bad = [] { return absl::InvalidArgumentError("cores as in \"2\", \"0.5\" or \"500m\", more than 0"); };
  const std::optional<Quantity> quantity = parse_quantity(text);
  if (!quantity || quantity->digits == 0 || quantity->binary != 0 || quantity->decimal > 6) return bad();
  double cores = static_cast<double>(quantity->digits);
  for (int i = 0; i < quantity->decimal; ++i) cores *= 10;
  // One division by an exact power of ten, so that "0.5" and "500m" are the same number.
  double divisor = 1;
  for (int i = quantity->decimal; i < 0; ++i) divisor *= 10;
  cores /= divisor;
  if (cores > kMost) return bad();
  return cores;
}

absl::StatusOr<FunctionOptions> read_options(const FunctionSpec& spec) {
  FunctionOptions options;
  if (absl::Status status = read_environment(spec, options); !status.ok()) return status;
  if (absl::Status status = read_scale(spec, options.scale); !status.ok()) return status;
  if (absl::Status status = read_resources(spec.limits, "limits", options.memory_bytes, options.cpu_cores);
      !status.ok()) {
    return status;
  }
  std::optional<std::uint64_t> requested_memory;
  std::optional<double> requested_cpu;
  if (absl::Status status = read_resources(spec.requests, "requests", requested_memory, requested_cpu); !status.ok()) {
    return status;
  }
  // Whoever makes calls later reads them again; here they are only checked.
  if (const auto retry = read_retry_options(spec.annotations); !retry.ok()) return retry.status();
  return options;
}

}  // namespace orla::function
