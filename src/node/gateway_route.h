// Which part of the gateway a request is for, by its method and its path as it was sent. Nothing is decoded or
// normalised: a path that only looks like another one after that is not it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orla::node {

struct Route {
  enum class Kind : std::uint8_t {
    kFunction,  // name, rest
    kAsync,     // name, rest; with DELETE name is a call id
    kSystem,    // rest: what follows "/system/"
    kUi,
    kRoot,
    kHealth,
    kNothing,  // 404
    kMethod,   // 405; rest: the methods that are possible
    kBadName,  // 400; name
  };
  Kind kind = Kind::kNothing;
  std::string_view name;  // of the path, as all below
  std::string_view rest;  // of functions: "/" and what follows
  // Whether who asks must say who they are, when there is authentication.
  bool guarded = false;
};

Route route(std::string_view method, std::string_view path);

}  // namespace orla::node
