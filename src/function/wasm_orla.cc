// The module "orla": what handlers ask for and answer (functions/sdk/orla.h says it for those who write them).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "function/wasm_imports.h"
#include "function/wasm_sandbox.h"

namespace orla::function {

namespace {

constexpr std::int32_t kNone = -1;

// One host call: its arguments, its result, and what went wrong with its pointers.
class Ask {
 public:
  Ask(Sandbox& sandbox, wasmtime_val_raw* values) : sandbox_(sandbox), values_(values) {}

  WasmCall& call() { return *sandbox_.call(); }
  std::uint32_t number(std::size_t i) const { return static_cast<std::uint32_t>(values_[i].i32); }
  std::int32_t integer(std::size_t i) const { return values_[i].i32; }
  // Argument i is a pointer, i + 1 its length. Null when it does not lie in the memory, which fails the call.
  char* bytes(std::size_t i) {
    char* at = sandbox_.memory(number(i), number(i + 1));
    bad_ = bad_ || at == nullptr;
    return at;
  }
  std::optional<std::string_view> text(std::size_t i) {
    const char* at = bytes(i);
    if (at == nullptr) return std::nullopt;
    return std::string_view(at, number(i + 1));
  }
  // Copies as much as there is room for at arguments i and i + 1; the result is the whole length.
  void give(std::size_t i, std::string_view value) {
    char* to = bytes(i);
    if (to == nullptr) return;
    const std::size_t n = std::min<std::size_t>(value.size(), number(i + 1));
    if (n > 0) std::memcpy(to, value.data(), n);
    returns(static_cast<std::int32_t>(std::min<std::size_t>(value.size(), std::numeric_limits<std::int32_t>::max())));
  }
  void returns(std::int32_t value) { result_ = value; }
  void returns_long(std::int64_t value) { long_ = value; }

  wasm_trap_t* finish(const WasmtimeApi& api, const char* name) {
    if (bad_) {
      const std::string why = fmt::format("orla.{} was given bytes outside of the function's memory", name);
      return api.wasmtime_trap_new(why.data(), why.size());
    }
    if (wasm_trap_t* ended = trap_when_ended(api, sandbox_); ended != nullptr) return ended;
    if (long_) {
      values_[0].i64 = *long_;
    } else {
      values_[0].i32 = result_;
    }
    return nullptr;
  }

 private:
  Sandbox& sandbox_;
  wasmtime_val_raw* values_;
  bool bad_ = false;
  std::int32_t result_ = 0;
  std::optional<std::int64_t> long_;
};

void method(Ask& ask) { ask.give(0, ask.call().call().head.method); }
void path(Ask& ask) { ask.give(0, ask.call().call().head.path); }
void query(Ask& ask) { ask.give(0, ask.call().call().head.query); }
void call_id(Ask& ask) { ask.give(0, ask.call().call().head.call_id); }

void header(Ask& ask) {
  const std::optional<std::string_view> name = ask.text(0);
  if (!name) return;
  const std::optional<std::string_view> value = find_header(ask.call().call().head.headers, *name);
  if (value) {
    ask.give(2, *value);
  } else {
    ask.returns(kNone);
  }
}

void header_name(Ask& ask) {
  const Headers& headers = ask.call().call().head.headers;
  const std::uint32_t index = ask.number(0);
  if (index < headers.size()) {
    ask.give(1, headers[index].first);
  } else {
    ask.returns(kNone);
  }
}

void header_value(Ask& ask) {
  const Headers& headers = ask.call().call().head.headers;
  const std::uint32_t index = ask.number(0);
  if (index < headers.size()) {
    ask.give(1, headers[index].second);
  } else {
    ask.returns(kNone);
  }
}

void body_bytes(Ask& ask) {
  const Call& call = ask.call().call();
  if (const std::optional<std::string_view> whole = call.body.whole(); whole) {
    ask.returns_long(static_cast<std::int64_t>(whole->size()));
  } else if (call.head.content_length && *call.head.content_length < (1ULL << 62)) {
    ask.returns_long(static_cast<std::int64_t>(*call.head.content_length));
  } else {
    ask.returns_long(-1);
  }
}

void body_read(Ask& ask) {
  char* to = ask.bytes(0);
  if (to == nullptr) return;
  const std::size_t room = std::min<std::size_t>(ask.number(1), std::numeric_limits<std::int32_t>::max());
  const absl::StatusOr<std::size_t> n = ask.call().read_body(to, room);
  ask.returns(n.ok() ? static_cast<std::int32_t>(*n) : kNone);
}

void status(Ask& ask) { ask.returns(ask.call().set_status(ask.integer(0)) ? 0 : kNone); }

void set_header(Ask& ask) {
  const std::optional<std::string_view> name = ask.text(0);
  const std::optional<std::string_view> value = ask.text(2);
  if (name && value) ask.returns(ask.call().add_header(*name, *value) ? 0 : kNone);
}

void write(Ask& ask) {
  const std::optional<std::string_view> piece = ask.text(0);
  if (piece) ask.returns(ask.call().write_output(*piece) ? 0 : kNone);
}

void flush(Ask& ask) { ask.returns(ask.call().flush_output() ? 0 : kNone); }

void log(Ask& ask) {
  const std::optional<std::string_view> line = ask.text(0);
  if (!line) return;
  ask.call().log().write(*line);
  ask.call().log().write("\n");
}

// The host function of one of these.
#define ORLA_IMPORT(name, signature)                                                                            \
  HostFunction {                                                                                                \
#name, signature, [](void* environment, wasmtime_caller* caller, wasmtime_val_raw* values, std::size_t) {     \
      const auto& api = *static_cast<const WasmtimeApi*>(environment);                                      \
      Ask ask(sandbox_of(api, caller), values);                                                             \
      name(ask);                                                                                            \
      return ask.finish(api, #name);                                                                        \
    } \
  }

}  // namespace

absl::Status define_orla(const WasmtimeApi& api, wasmtime_linker* linker) {
  return define_host_functions(
      api, linker, "orla",
      {ORLA_IMPORT(method, "ii:i"), ORLA_IMPORT(path, "ii:i"), ORLA_IMPORT(query, "ii:i"), ORLA_IMPORT(call_id, "ii:i"),
       ORLA_IMPORT(header, "iiii:i"), ORLA_IMPORT(header_name, "iii:i"), ORLA_IMPORT(header_value, "iii:i"),
       ORLA_IMPORT(body_bytes, ":I"), ORLA_IMPORT(body_read, "ii:i"), ORLA_IMPORT(status, "i:i"),
       ORLA_IMPORT(set_header, "iiii:i"), ORLA_IMPORT(write, "ii:i"), ORLA_IMPORT(flush, ":i"),
       ORLA_IMPORT(log, "ii:i")});
}

}  // namespace orla::function
