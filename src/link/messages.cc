#include "link/messages.h"

#include "link/ranges.h"

namespace orla::link {

namespace {

// Fixed parts of a message on the wire, roughly.
constexpr std::size_t kSmall = 16;
constexpr std::size_t kCursorBytes = 48;

std::size_t wire_bytes(const model::GroupDef& group) {
  std::size_t bytes = kSmall + group.stream.size();
  for (const model::Label& label : group.labels) bytes += label.first.size() + label.second.size() + 6;
  return bytes;
}

std::size_t wire_bytes(const std::vector<model::Cursor>& cursors) {
  std::size_t bytes = 0;
  for (const model::Cursor& cursor : cursors) {
    bytes += kCursorBytes + cursor.node.size() + cursor.tombstones.size() * kSmall;
  }
  return bytes;
}

struct Bytes {
  std::size_t operator()(const Hello& m) const { return kSmall + m.fleet.size() + m.node.size(); }
  std::size_t operator()(const Dictionary& m) const {
    std::size_t bytes = kSmall;
    for (const Dictionary::Entry& entry : m.entries) bytes += 6 + wire_bytes(entry.group);
    return bytes;
  }
  std::size_t operator()(const FrameMessage& m) const {
    std::size_t bytes = kSmall + m.rows.size();
    for (const model::Range& range : m.ranges) bytes += link::wire_bytes(range);
    return bytes;
  }
  std::size_t operator()(const OpenEpoch& m) const { return 2 * kSmall + m.node.size(); }
  std::size_t operator()(const Heartbeat&) const { return 2; }
  std::size_t operator()(const Welcome& m) const { return kSmall + m.node.size(); }
  std::size_t operator()(const Acknowledge& m) const { return 2 + wire_bytes(m.cursors); }
  std::size_t operator()(const Refused& m) const { return kSmall + wire_bytes(m.cursors) + m.message.size(); }
  std::size_t operator()(const Opened& m) const {
    std::size_t bytes = kSmall + kCursorBytes + m.current.node.size();
    for (const model::StateEntry& entry : m.states) bytes += entry.bytes.size() + 4;
    bytes += (m.current.tombstones.size() + m.replaced_tombstones.size()) * kSmall;
    for (const model::Loss& loss : m.losses) {
      bytes += kSmall + loss.reason.size();
      for (const auto& [input, samples] : loss.samples) bytes += input.size() + kSmall;
    }
    return bytes;
  }
  std::size_t operator()(const Rejected& m) const { return 4 + m.message.size(); }
};

}  // namespace

std::size_t wire_bytes(const UpMessage& message) { return std::visit(Bytes{}, message); }
std::size_t wire_bytes(const DownMessage& message) { return std::visit(Bytes{}, message); }

}  // namespace orla::link
