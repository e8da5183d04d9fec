#include "model/loss.h"

#include <algorithm>

namespace orla::model {

namespace {

using Samples = std::vector<std::pair<std::string, std::uint64_t>>;

void add_one(Samples& into, const std::string& key, std::uint64_t count) {
  const auto at = std::lower_bound(into.begin(), into.end(), key,
                                   [](const auto& entry, const std::string& k) { return entry.first < k; });
  if (at != into.end() && at->first == key) {
    at->second += count;
  } else {
    into.insert(at, {key, count});
  }
}

bool has(const Samples& samples, const std::string& key) {
  return std::binary_search(samples.begin(), samples.end(), std::pair<std::string, std::uint64_t>(key, 0),
                            [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

void add_samples(Samples& into, const Samples& more) {
  for (const auto& [key, count] : more) add_one(into, key, count);
}

bool add_loss(std::vector<Loss>& losses, const Tombstone& tombstone) {
  const auto find = [&](const std::string& reason) {
    return std::lower_bound(losses.begin(), losses.end(), reason,
                            [](const Loss& loss, const std::string& r) { return loss.reason < r; });
  };
  std::string reason = tombstone.reason;
  auto at = find(reason);
  if ((at == losses.end() || at->reason != reason) && losses.size() + 1 >= kMaxLossReasons) {
    reason = kOtherLosses;
    at = find(reason);
  }
  const bool first = at == losses.end() || at->reason != reason;
  if (first) at = losses.insert(at, Loss{reason, 0, {}, 0});
  at->chunks += tombstone.last - tombstone.first + 1;
  at->raw_samples += tombstone.raw_samples;
  for (const auto& [key, count] : tombstone.samples) {
    const bool room = at->samples.size() + 1 < kMaxLossInputs || has(at->samples, key);
    add_one(at->samples, room ? key : kOtherLosses, count);
  }
  return first;
}

std::uint64_t lost_samples(const Loss& loss) {
  std::uint64_t n = 0;
  for (const auto& [key, count] : loss.samples) n += count;
  return n;
}

}  // namespace orla::model
