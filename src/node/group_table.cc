#include "node/group_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace orla::node {

namespace {
constexpr std::size_t kEntriesPerMessage = 4096;
}

absl::StatusOr<model::GroupId> GroupTable::intern(const model::GroupDef& group) {
  std::string key = model::identity(group);
  const auto found = ids_.find(key);
  if (found != ids_.end()) return found->second;
  if (groups_.size() >= limit_) {
    return absl::ResourceExhaustedError(absl::StrCat("more than ", limit_,
                                                     " groups at this node: raise `groups` in [limits], or give the "
                                                     "rollups fewer labels"));
  }
  const auto id = static_cast<model::GroupId>(groups_.size());
  groups_.push_back(group);
  ids_.emplace(std::move(key), id);
  return id;
}

absl::Status ChildGroups::define(const link::Dictionary& dictionary,
                                 const std::function<absl::StatusOr<model::GroupId>(const model::GroupDef&)>& intern) {
  for (const link::Dictionary::Entry& entry : dictionary.entries) {
    if (model::index(entry.id) != ours_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("dictionary defines group ", model::index(entry.id), " where ", ours_.size(), " is next"));
    }
    absl::StatusOr<model::GroupId> id = intern(entry.group);
    if (!id.ok()) return id.status();
    ours_.push_back(*id);
  }
  return absl::OkStatus();
}

absl::Status ChildGroups::translate(model::PartialRows& rows) const {
  for (model::PartialRow& row : rows) {
    if (model::index(row.group) >= ours_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("a row of group ", model::index(row.group),
                                                     ", which this connection's dictionary of ", ours_.size(),
                                                     " groups does not define"));
    }
    row.group = ours_[model::index(row.group)];
  }
  model::canonicalize(rows);
  return absl::OkStatus();
}

absl::Status ChildGroups::translate(model::Content& content) const {
  for (model::SampleBlock& block : content.samples) {
    for (model::SampleBlock::Run& run : block.runs) {
      if (model::index(run.group) >= ours_.size()) {
        return absl::InvalidArgumentError(absl::StrCat("samples of group ", model::index(run.group),
                                                       ", which this connection's dictionary of ", ours_.size(),
                                                       " groups does not define"));
      }
      run.group = ours_[model::index(run.group)];
    }
  }
  return translate(content.rows);
}

void send_dictionary(std::size_t& sent, std::size_t known, const std::function<model::GroupDef(std::size_t)>& def,
                     const std::function<void(link::Dictionary)>& send) {
  while (sent < known) {
    link::Dictionary message;
    const std::size_t end = std::min(known, sent + kEntriesPerMessage);
    for (; sent < end; ++sent) message.entries.push_back({static_cast<model::GroupId>(sent), def(sent)});
    send(std::move(message));
  }
}

}  // namespace orla::node
