// Dense numbers for groups, and their translation between the two ends of a connection.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "link/messages.h"
#include "model/chunk.h"
#include "model/series.h"

namespace orla::node {

// Numbers groups from 0 in the order they are first seen. Bounded: intern() beyond `limit` is ResourceExhausted.
class GroupTable {
 public:
  explicit GroupTable(std::size_t limit) : limit_(limit) {}
  absl::StatusOr<model::GroupId> intern(const model::GroupDef& group);
  std::size_t size() const { return groups_.size(); }
  const model::GroupDef& operator[](model::GroupId id) const { return groups_[model::index(id)]; }

 private:
  std::size_t limit_;
  std::vector<model::GroupDef> groups_;
  std::unordered_map<std::string, model::GroupId> ids_;  // by identity
};

// The numbers one child uses on one connection.
class ChildGroups {
 public:
  // Numbers come in order, each once.
  absl::Status define(const link::Dictionary& dictionary,
                      const std::function<absl::StatusOr<model::GroupId>(const model::GroupDef&)>& intern);
  // Replaces the child's numbers by this node's and sorts. InvalidArgument for an undefined number.
  absl::Status translate(model::PartialRows& rows) const;
  // Likewise of rows and blocks, whose order stays.
  absl::Status translate(model::Content& content) const;

 private:
  std::vector<model::GroupId> ours_;  // by the child's number
};

// The part of a dictionary a parent has not been sent on this connection yet.
// `def(i)` is group number i. Calls `send` with messages of bounded size.
void send_dictionary(std::size_t& sent, std::size_t known, const std::function<model::GroupDef(std::size_t)>& def,
                     const std::function<void(link::Dictionary)>& send);

}  // namespace orla::node
