#include "link/root_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link/ranges.h"

namespace orla::link {

RootCore::RootCore(const std::vector<model::Cursor>& cursors, const std::vector<ClosedOrigin>& closed) {
  for (const model::Cursor& cursor : cursors) {
    Origin& origin = origins_[cursor.node];
    origin.committed = origin.tentative = cursor;
  }
  for (const ClosedOrigin& one : closed) {
    const auto it = origins_.find(one.node);
    if (it == origins_.end()) continue;
    it->second.closed.push_back(Closed{one.epoch, one.last, {}, one.tombstones});
    if (it->second.closed.size() > kMaxClosedEpochs) it->second.closed.pop_front();
  }
}

std::vector<RootCore::Label> RootCore::labels_of(const std::vector<model::Range>& ranges) {
  std::vector<Label> labels;
  labels.reserve(ranges.size());
  for (const model::Range& range : ranges) labels.push_back(Label{range.node, range.epoch, range.first, range.last});
  return labels;
}

model::Cursor RootCore::cursor(const model::NodeName& node) const {
  const auto it = origins_.find(node);
  model::Cursor none;
  none.node = node;
  return it == origins_.end() || it->second.committed.epoch == model::Epoch{} ? none : it->second.committed;
}

RootCore::Match RootCore::match(const model::Range& range) const {
  const auto it = origins_.find(range.node);
  if (it == origins_.end() && origins_.size() >= kMaxOrigins) return Match::kFull;
  if (it == origins_.end() || it->second.tentative.epoch == model::Epoch{}) {
    if (range.first != 1) return Match::kOther;
    return range.chain_before == base::Digest{} ? Match::kNext : Match::kDigest;
  }
  const model::Cursor& at = it->second.tentative;
  if (range.epoch != at.epoch) return Match::kOther;
  if (range.first == at.last + 1) return range.chain_before == at.chain ? Match::kNext : Match::kDigest;
  return range.last == at.last && range.chain_after != at.chain ? Match::kDigest : Match::kOther;
}

RootCore::Verdict RootCore::offer(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges) {
  if (committing_) {
    refuse(child, frame, ranges, RefusalReason::kFull, "the cloud is busy with a commit");
    return Verdict::kAnswered;
  }
  if (const absl::Status status = check_ranges(ranges); !status.ok()) {
    refuse(child, frame, ranges, RefusalReason::kMalformed, std::string(status.message()));
    return Verdict::kAnswered;
  }
  ++counters_.frames;
  for (const model::Range& range : ranges) counters_.received += chunks(range);
  const model::Range* other = nullptr;
  for (const model::Range& range : ranges) {
    const Match found = match(range);
    if (found == Match::kNext) continue;
    if (found == Match::kFull) {
      answer(
          PendingFrame{child, false, frame, labels_of(ranges), ""}, RefusalReason::kFull,
          fmt::format("the cloud has {} origins, its bound; node \"{}\" would be one more", kMaxOrigins, range.node));
      return Verdict::kAnswered;
    }
    if (found == Match::kDigest) {
      const std::string text = fmt::format(
          "chunks {}..{} of node \"{}\" do not have the contents this cloud has, or continues from, at these "
          "numbers: two nodes use one name and state, or one went back to an old state",
          range.first, range.last, range.node);
      alarm(text);
      answer(PendingFrame{child, false, frame, labels_of(ranges), ""}, RefusalReason::kDigest, text);
      return Verdict::kAnswered;
    }
    if (other == nullptr) other = &range;
  }
  if (other == nullptr) {
    offered_ = {child, frame};
    return Verdict::kFold;
  }
  PendingFrame refused{child, false, frame, labels_of(ranges),
                       fmt::format("chunks {}..{} of node \"{}\" are not the next ones of its current epoch",
                                   other->first, other->last, other->node)};
  const bool wait =
      std::any_of(ranges.begin(), ranges.end(), [&](const model::Range& range) { return undecided(range.node); });
  if (wait) {
    for (const model::Range& range : ranges) counters_.pending += chunks(range);
    waiting_.push_back(std::move(refused));
  } else {
    answer(refused, RefusalReason::kCursor, refused.why);
  }
  return Verdict::kAnswered;
}

void RootCore::folded(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges) {
  offered_.reset();
  for (const model::Range& range : ranges) {
    Origin& origin = origins_[range.node];
    origin.committed.node = range.node;
    model::Cursor& at = origin.tentative;
    if (at.epoch != range.epoch) at.tombstones.clear();
    at.node = range.node;
    at.epoch = range.epoch;
    at.last = range.last;
    at.chain = range.chain_after;
    for (const model::Tombstone& t : range.note.tombstones) add_numbers(at.tombstones, {t.first, t.last});
    changed_.insert(range.node);
    counters_.pending += chunks(range);
  }
  folded_.push_back(PendingFrame{child, false, frame, labels_of(ranges), ""});
}

void RootCore::refuse(ConnectionId child, std::uint64_t frame, const std::vector<model::Range>& ranges,
                      RefusalReason reason, std::string why) {
  const bool counted = std::exchange(offered_, std::nullopt) == std::pair{child, frame};
  PendingFrame refused{child, false, frame, {}, ""};
  if (check_ranges(ranges).ok()) refused.labels = labels_of(ranges);  // else they cannot be counted
  if (!counted) {
    ++counters_.frames;
    for (const Label& label : refused.labels) counters_.received += label.last - label.first + 1;
  }
  answer(refused, reason, why);
}

// Counts the frame and sends Refused with the committed cursors.
void RootCore::answer(const PendingFrame& frame, RefusalReason reason, const std::string& why) {
  ++counters_.frames_refused;
  Refused message{frame.frame, reason, {}, why};
  for (const Label& label : frame.labels) {
    const model::Cursor at = cursor(label.node);
    const std::uint64_t all = label.last - label.first + 1;
    std::uint64_t known = 0;
    if (at.epoch == label.epoch) {
      known = at.last >= label.first ? std::min(at.last, label.last) - label.first + 1 : 0;
    } else if (at.epoch != model::Epoch{}) {
      known = all;
    }
    counters_.duplicate += known;
    counters_.refused += all - known;
    message.cursors.push_back(at);
  }
  if (!frame.child_left) actions_.emplace_back(ToChild{frame.child, std::move(message)});
}

void RootCore::open(ConnectionId child, const OpenEpoch& message) {
  const PendingOpen request{child, message};
  if (committing_) {
    next_.push_back(request);
    return;
  }
  if (message.epoch == model::Epoch{} || message.node.empty()) {
    answer_open(request);
    return;
  }
  const auto it = origins_.find(message.node);
  const model::Cursor at = it == origins_.end() ? model::Cursor{} : it->second.tentative;
  bool was = at.epoch == message.epoch;
  if (it != origins_.end()) {
    for (const Closed& closed : it->second.closed) was = was || closed.epoch == message.epoch;
    for (const Closed& closed : it->second.closed_tentative) was = was || closed.epoch == message.epoch;
  }
  const bool room = it != origins_.end() || origins_.size() < kMaxOrigins;
  if (!was && room && at.epoch == message.replaces) {
    Origin& origin = origins_[message.node];
    origin.committed.node = message.node;
    if (at.epoch != model::Epoch{})
      origin.closed_tentative.push_back(Closed{at.epoch, at.last, at.chain, at.tombstones});
    origin.tentative = model::Cursor{message.node, message.epoch, 0, {}};
    changed_.insert(message.node);
    ++counters_.epochs_opened;
  } else if (at.epoch != message.epoch) {
    ++counters_.opens_refused;
  }
  if (undecided(message.node)) {
    opens_.push_back(request);
  } else {
    answer_open(request);
  }
}

// From the committed state.
void RootCore::answer_open(const PendingOpen& open) {
  Opened message;
  message.request = open.message.request;
  message.current = cursor(open.message.node);
  message.opened = message.current.epoch == open.message.epoch && open.message.epoch != model::Epoch{};
  const auto it = origins_.find(open.message.node);
  if (it != origins_.end()) {
    for (const Closed& closed : it->second.closed) {
      if (closed.epoch != open.message.replaces) continue;
      message.replaced_last = closed.last;
      message.replaced_tombstones = closed.tombstones;
    }
  }
  actions_.emplace_back(AnswerOpen{open.child, open.message.node, std::move(message)});
}

void RootCore::child_down(ConnectionId child) {
  for (PendingFrame& frame : folded_) frame.child_left = frame.child_left || frame.child == child;
  for (PendingFrame& frame : waiting_) frame.child_left = frame.child_left || frame.child == child;
  std::erase_if(opens_, [&](const PendingOpen& open) { return open.child == child; });
  std::erase_if(next_, [&](const PendingOpen& open) { return open.child == child; });
}

bool RootCore::dirty() const { return !changed_.empty(); }

RootCore::Changes RootCore::changes() {
  committing_ = true;
  Changes changes;
  for (const model::NodeName& node : changed_) {
    const Origin& origin = origins_.at(node);
    changes.cursors.push_back(origin.tentative);
    for (const Closed& closed : origin.closed_tentative) {
      changes.closed.push_back(ClosedOrigin{node, closed.epoch, closed.last, closed.tombstones});
    }
  }
  return changes;
}

void RootCore::committed() {
  // What each child hears: the newest cursor of every (origin, epoch) it brought chunks of.
  std::map<ConnectionId, std::map<std::pair<model::NodeName, model::Epoch>, model::Cursor>> news;
  for (const PendingFrame& frame : folded_) {
    for (const Label& label : frame.labels) {
      const std::uint64_t n = label.last - label.first + 1;
      counters_.pending -= n;
      counters_.applied += n;
      if (frame.child_left) continue;
      const Origin& origin = origins_.at(label.node);
      model::Cursor at = origin.tentative;
      for (const Closed& closed : origin.closed_tentative) {
        if (closed.epoch == label.epoch) {
          at = model::Cursor{label.node, closed.epoch, closed.last, closed.chain, closed.tombstones};
        }
      }
      news[frame.child][{label.node, label.epoch}] = std::move(at);
    }
  }
  for (const model::NodeName& node : changed_) {
    Origin& origin = origins_.at(node);
    origin.committed = origin.tentative;
    for (const Closed& closed : origin.closed_tentative) {
      origin.closed.push_back(closed);
      if (origin.closed.size() > kMaxClosedEpochs) origin.closed.pop_front();
    }
    origin.closed_tentative.clear();
  }
  changed_.clear();
  folded_.clear();
  for (auto& [child, cursors] : news) {
    Acknowledge message;
    for (auto& [key, at] : cursors) message.cursors.push_back(std::move(at));
    actions_.emplace_back(ToChild{child, std::move(message)});
  }
  for (const PendingFrame& frame : std::exchange(waiting_, {})) {
    for (const Label& label : frame.labels) counters_.pending -= label.last - label.first + 1;
    answer(frame, RefusalReason::kCursor, frame.why);
  }
  for (const PendingOpen& request : std::exchange(opens_, {})) answer_open(request);
  committing_ = false;
  for (const PendingOpen& request : std::exchange(next_, {})) open(request.child, request.message);
}

void RootCore::rolled_back(const std::string& why) {
  for (const model::NodeName& node : changed_) {
    const auto it = origins_.find(node);
    it->second.tentative = it->second.committed;
    it->second.closed_tentative.clear();
    if (it->second.committed.epoch == model::Epoch{}) origins_.erase(it);
  }
  changed_.clear();
  for (const PendingFrame& frame : std::exchange(folded_, {})) {
    for (const Label& label : frame.labels) counters_.pending -= label.last - label.first + 1;
    answer(frame, RefusalReason::kFull, why);
  }
  for (const PendingFrame& frame : std::exchange(waiting_, {})) {
    for (const Label& label : frame.labels) counters_.pending -= label.last - label.first + 1;
    answer(frame, RefusalReason::kCursor, frame.why);
  }
  for (const PendingOpen& request : std::exchange(opens_, {})) answer_open(request);
  committing_ = false;
  for (const PendingOpen& request : std::exchange(next_, {})) open(request.child, request.message);
}

void RootCore::alarm(std::string text) {
  ++counters_.alarms;
  actions_.emplace_back(Alarm{std::move(text)});
}

std::vector<RootCore::Action> RootCore::take_actions() { return std::exchange(actions_, {}); }

}  // namespace orla::link
