// The identity of what is measured.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orla::model {

// A dense number that stands for one series inside one input or one engine. Never sent between nodes.
enum class SeriesId : std::uint32_t {};
// A dense number that stands for one group of one stream (see plan.h) inside one node or one connection.
enum class GroupId : std::uint32_t {};

constexpr std::uint32_t index(SeriesId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(GroupId id) { return static_cast<std::uint32_t>(id); }

using Label = std::pair<std::string, std::string>;  // name, value

// Metric name and labels, sorted by label name; names are unique.
struct Series {
  std::string metric;
  std::vector<Label> labels;
  friend bool operator==(const Series&, const Series&) = default;
};

// "load{house=3,household=0,plug=7}"
std::string to_string(const Series& series);

// What a partial belongs to: a group of a stream. It describes itself, so that a node which does not know the stream's
// definition can carry, and merge, its partials. Two groups are the same when all members are equal.
struct GroupDef {
  std::string stream;            // name of the stream (see plan.h)
  std::uint64_t definition = 0;  // hash of the stream's definition
  std::int64_t slice_ns = 0;     // length of a slice, > 0
  int decimals = 0;              // decimals of exact sums, 0..15
  std::vector<Label> labels;     // in the order of the stream's `by`
  friend bool operator==(const GroupDef&, const GroupDef&) = default;
};

// A byte string that is equal exactly for equal values (a key for hash maps).
std::string identity(const Series& series);
std::string identity(const GroupDef& group);

}  // namespace orla::model
