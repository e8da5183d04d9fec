#include "node/gateway_route.h"

#include <algorithm>

namespace orla::node {

namespace {

constexpr std::string_view kAnyMethod = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS";

bool is_function_method(std::string_view method) {
  return method == "POST" || method == "GET" || method == "PUT" || method == "PATCH" || method == "DELETE" ||
         method == "HEAD" || method == "OPTIONS";
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 2 * 63 + 1 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

bool take_prefix(std::string_view& path, std::string_view prefix) {
  if (path.substr(0, prefix.size()) != prefix) return false;
  path.remove_prefix(prefix.size());
  return true;
}

// "name/rest": the rest begins with its slash.
Route named(Route::Kind kind, std::string_view path) {
  const std::size_t slash = path.find('/');
  Route route{kind, path.substr(0, slash), slash == std::string_view::npos ? "/" : path.substr(slash)};
  if (!is_name(route.name)) route.kind = Route::Kind::kBadName;
  return route;
}

Route only(Route route, bool possible, std::string_view methods) {
  if (possible) return route;
  return {Route::Kind::kMethod, {}, methods, route.guarded};
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.substr(0, folder.size()) == folder && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

Route route(std::string_view method, std::string_view path) {
  const bool reads = method == "GET" || method == "HEAD";
  std::string_view rest = path;
  if (take_prefix(rest, "/function/")) {
    return only(named(Route::Kind::kFunction, rest), is_function_method(method), kAnyMethod);
  }
  if (take_prefix(rest, "/async-function/")) {
    return only(named(Route::Kind::kAsync, rest), method == "POST" || method == "DELETE", "POST, DELETE");
  }
  if (is_below(path, "/system")) {
    Route system{Route::Kind::kSystem, {}, path.substr(std::min<std::size_t>(path.size(), 8)), true};
    return system;
  }
  if (path == "/ui" || path == "/ui/") return only({Route::Kind::kUi, {}, path, true}, reads, "GET, HEAD");
  if (is_below(path, "/ui")) return {Route::Kind::kNothing, {}, {}, true};
  if (path == "/") return only({Route::Kind::kRoot, {}, {}}, reads, "GET, HEAD");
  if (path == "/healthz") return only({Route::Kind::kHealth, {}, {}}, reads, "GET, HEAD");
  return {};
}

}  // namespace orla::node
