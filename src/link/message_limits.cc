#include "link/message_limits.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/utf8.h"
#include "link/proto_codec.h"
#include "model/exact_sum.h"

namespace orla::link {

namespace {

// Collects the first broken rule.
class Checker {
 public:
  const absl::Status& status() const { return status_; }

  void name(std::string_view field, std::string_view value) {
    if (value.size() > kMaxNameBytes) {
      fail(field, fmt::format("{} bytes, starting \"{}\"", value.size(), base::to_utf8(value.substr(0, 40))),
           fmt::format("at most {} bytes", kMaxNameBytes));
    } else if (!base::is_utf8(value)) {
      fail(field, fmt::format("\"{}\"", base::to_utf8(value)), "UTF-8");
    }
  }
  void label(std::string_view field, std::string_view value) {
    if (value.size() > kMaxLabelBytes) {
      fail(field, fmt::format("{} bytes, starting \"{}\"", value.size(), base::to_utf8(value.substr(0, 40))),
           fmt::format("at most {} bytes", kMaxLabelBytes));
    }
  }
  void require(bool holds, std::string_view field, std::int64_t found, std::string_view expected) {
    if (!holds) fail(field, fmt::format("{}", found), expected);
  }

  void operator()(const Hello& m) {
    // Another major may mean something else by these; it is only there to be rejected.
    if (m.major != kProtocolMajor) return;
    name("hello.fleet", m.fleet);
    name("hello.node", m.node);
  }
  void operator()(const Dictionary& m) {
    for (const Dictionary::Entry& entry : m.entries) {
      const model::GroupDef& group = entry.group;
      name("dictionary.stream", group.stream);
      require(group.slice_ns > 0, "dictionary.slice_ns", group.slice_ns, "more than 0");
      require(group.decimals >= 0 && group.decimals <= model::kMaxDecimals, "dictionary.decimals", group.decimals,
              "0 to 15");
      require(group.labels.size() <= kMaxLabels, "dictionary.labels", static_cast<std::int64_t>(group.labels.size()),
              "at most 64 labels");
      for (const model::Label& one : group.labels) {
        label("dictionary.label_names", one.first);
        label("dictionary.label_values", one.second);
      }
      if (!status_.ok()) return;
    }
  }
  void operator()(const FrameMessage& m) {
    for (const model::Range& range : m.ranges) {
      name("frame.range.node", range.node);
      for (const model::Publication& one : range.note.publications) name("frame.range.note.metrics", one.metric);
      for (const auto& [input, ledger] : range.note.ledgers) {
        name("frame.range.note.ledger.input", input);
        for (const auto& [reason, count] : ledger.rejected) name("frame.range.note.ledger.rejected_reasons", reason);
        for (const auto& [reason, count] : ledger.dropped) name("frame.range.note.ledger.dropped_reasons", reason);
      }
      for (const model::Tombstone& tombstone : range.note.tombstones) {
        name("frame.range.note.tombstone.reason", tombstone.reason);
        for (const auto& [input, count] : tombstone.samples) name("frame.range.note.tombstone.inputs", input);
      }
      if (!status_.ok()) return;
    }
  }
  void operator()(const OpenEpoch& m) { name("open_epoch.node", m.node); }
  void operator()(const Heartbeat&) {}
  void operator()(const Welcome& m) {
    if (m.major != kProtocolMajor) return;
    name("welcome.node", m.node);
    require(m.heartbeat_ms > 0, "welcome.heartbeat_ms", m.heartbeat_ms, "more than 0");
  }
  void operator()(const Acknowledge& m) { cursors("acknowledge.cursors.nodes", m.cursors); }
  void operator()(const Refused& m) { cursors("refused.cursors.nodes", m.cursors); }
  void operator()(const Opened& m) {
    name("opened.current.nodes", m.current.node);
    for (const model::Loss& loss : m.losses) {
      name("opened.loss.reason", loss.reason);
      for (const auto& [input, count] : loss.samples) name("opened.loss.inputs", input);
    }
  }
  void operator()(const Rejected&) {}

 private:
  void cursors(std::string_view field, const std::vector<model::Cursor>& all) {
    for (const model::Cursor& cursor : all) name(field, cursor.node);
  }
  void fail(std::string_view field, std::string_view found, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(fmt::format("{}: found {}, expected {}", field, found, expected));
  }
  absl::Status status_;
};

template <typename Message>
absl::Status check(const Message& message) {
  Checker checker;
  std::visit(checker, message);
  return checker.status();
}

}  // namespace

absl::Status check_limits(const UpMessage& message) { return check(message); }
absl::Status check_limits(const DownMessage& message) { return check(message); }

}  // namespace orla::link
