#include "base/faulty_disk.h"

#include <fmt/format.h>

#include <algorithm>

namespace orla::base {

namespace {
// As much of the end of what survives power loss may be garbage: a page that was half on disk.
constexpr std::size_t kGarbage = 4096;
}  // namespace

// Dead once the process that opened it is.
class FaultyFile final : public AppendFile {
 public:
  FaultyFile(FaultyDisk& disk, std::shared_ptr<FaultyDisk::File> file, std::string name)
      : disk_(disk), file_(std::move(file)), name_(std::move(name)), process_(disk.processes_) {}

  absl::Status append(std::string_view bytes) override {
    if (absl::Status status = alive(); !status.ok()) return status;
    return disk_.append_to(*file_, name_, bytes);
  }
  absl::Status sync() override {
    if (absl::Status status = alive(); !status.ok()) return status;
    return disk_.sync_file(*file_, name_);
  }
  std::uint64_t size() const override { return file_->bytes.size(); }

 private:
  absl::Status alive() const {
    if (process_ == disk_.processes_) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format("{}: \"{}\" was opened before a crash", disk_.where_, name_));
  }

  FaultyDisk& disk_;
  std::shared_ptr<FaultyDisk::File> file_;
  std::string name_;
  std::uint64_t process_;
};

FaultyDisk::FaultyDisk(Random& random, std::string where) : random_(random), where_(std::move(where)) {}

std::string FaultyDisk::boot() const { return fmt::format("boot-{}", boots_); }

absl::Status FaultyDisk::at(Step::Kind kind, Step::Moment moment, const std::string& name, std::size_t bytes) const {
  return hook ? hook({kind, moment, name, bytes}) : absl::OkStatus();
}

absl::Status FaultyDisk::fails(std::uint64_t one_in, std::string_view what, const std::string& name) const {
  if (one_in == 0 || random_.below(one_in) != 0) return absl::OkStatus();
  ++counters_.failures;
  return absl::UnavailableError(fmt::format("{}: simulated: cannot {} \"{}\"", where_, what, name));
}

absl::StatusOr<std::vector<Disk::Entry>> FaultyDisk::list() const {
  std::vector<Entry> out;
  for (const auto& [name, file] : names_) out.push_back({name, file->bytes.size()});
  return out;
}

absl::StatusOr<std::string> FaultyDisk::read(const std::string& name, std::uint64_t offset, std::size_t bytes) const {
  if (absl::Status status = at(Step::Kind::kRead, Step::Moment::kBefore, name, bytes); !status.ok()) return status;
  ++counters_.reads;
  const auto found = names_.find(name);
  if (found == names_.end()) return absl::NotFoundError(fmt::format("{}: there is no \"{}\"", where_, name));
  if (absl::Status status = fails(odds.read, "read", name); !status.ok()) return status;
  const std::string& all = found->second->bytes;
  std::string out = offset < all.size() ? all.substr(static_cast<std::size_t>(offset), bytes) : std::string();
  if (absl::Status status = at(Step::Kind::kRead, Step::Moment::kAfter, name, bytes); !status.ok()) return status;
  return out;
}

absl::StatusOr<std::unique_ptr<AppendFile>> FaultyDisk::append(const std::string& name, std::uint64_t keep) {
  if (absl::Status status = at(Step::Kind::kOpen, Step::Moment::kBefore, name, 0); !status.ok()) return status;
  if (absl::Status status = fails(odds.open, "open", name); !status.ok()) return status;
  const auto found = names_.find(name);
  const std::uint64_t size = found == names_.end() ? 0 : found->second->bytes.size();
  if (keep > size) {
    return absl::DataLossError(fmt::format("{}: \"{}\" has {} bytes; {} were to be kept", where_, name, size, keep));
  }
  std::shared_ptr<File>& file = names_[name];
  if (file == nullptr) file = std::make_shared<File>();
  shorten(*file, static_cast<std::size_t>(keep));
  auto out = std::make_unique<FaultyFile>(*this, file, name);
  if (absl::Status status = at(Step::Kind::kOpen, Step::Moment::kAfter, name, 0); !status.ok()) return status;
  return out;
}

void FaultyDisk::shorten(File& file, std::size_t keep) {
  if (keep >= file.bytes.size()) return;
  if (keep < file.durable) {
    file.cut_off = file.bytes.substr(keep, file.durable - keep) + file.cut_off;
    file.durable = keep;
  }
  file.bytes.resize(keep);
  for (auto& [from, to] : file.doomed) to = std::min(to, keep);
  std::erase_if(file.doomed, [](const auto& range) { return range.first >= range.second; });
}

absl::Status FaultyDisk::append_to(File& file, const std::string& name, std::string_view bytes) {
  if (absl::Status status = at(Step::Kind::kAppend, Step::Moment::kBefore, name, bytes.size()); !status.ok()) {
    return status;
  }
  ++counters_.appends;
  const std::uint64_t all = used();
  const std::uint64_t room = capacity > all ? capacity - all : 0;
  if (room < bytes.size()) {
    ++counters_.failures;
    file.bytes.append(bytes.substr(0, static_cast<std::size_t>(room)));
    return absl::ResourceExhaustedError(
        fmt::format("{}: simulated: no space for {} bytes of \"{}\"", where_, bytes.size(), name));
  }
  const bool parted = (hook || odds.append != 0) && !bytes.empty();
  const std::size_t part = parted ? static_cast<std::size_t>(random_.below(bytes.size())) : 0;
  file.bytes.append(bytes.substr(0, part));
  if (absl::Status status = fails(odds.append, "write to", name); !status.ok()) return status;
  if (absl::Status status = at(Step::Kind::kAppend, Step::Moment::kWithin, name, bytes.size()); !status.ok()) {
    return status;
  }
  file.bytes.append(bytes.substr(part));
  counters_.appended_bytes += bytes.size();
  return at(Step::Kind::kAppend, Step::Moment::kAfter, name, bytes.size());
}

absl::Status FaultyDisk::sync_file(File& file, const std::string& name) {
  if (absl::Status status = at(Step::Kind::kSync, Step::Moment::kBefore, name, 0); !status.ok()) return status;
  ++counters_.syncs;
  if (absl::Status status = fails(odds.sync, "sync", name); !status.ok()) {
    ++counters_.failed_syncs;
    if (file.durable < file.bytes.size()) file.doomed.emplace_back(file.durable, file.bytes.size());
    return status;
  }
  file.durable = file.bytes.size();
  file.cut_off.clear();
  return at(Step::Kind::kSync, Step::Moment::kAfter, name, 0);
}

absl::Status FaultyDisk::remove(const std::string& name) {
  if (absl::Status status = at(Step::Kind::kRemove, Step::Moment::kBefore, name, 0); !status.ok()) return status;
  if (absl::Status status = fails(odds.remove, "remove", name); !status.ok()) {
    ++counters_.failed_removals;
    return status;
  }
  names_.erase(name);
  return at(Step::Kind::kRemove, Step::Moment::kAfter, name, 0);
}

absl::Status FaultyDisk::sync_names() {
  if (absl::Status status = at(Step::Kind::kSyncNames, Step::Moment::kBefore, {}, 0); !status.ok()) return status;
  if (absl::Status status = fails(odds.sync_names, "sync the names of", "the folder"); !status.ok()) return status;
  durable_names_ = names_;
  return at(Step::Kind::kSyncNames, Step::Moment::kAfter, {}, 0);
}

void FaultyDisk::crash() { ++processes_; }

void FaultyDisk::lose_power(File& file) {
  for (const auto& [from, to] : file.doomed) {
    std::fill_n(file.bytes.begin() + static_cast<std::ptrdiff_t>(from), to - from, '\0');
  }
  if (!file.cut_off.empty() && random_.below(2) == 0) {
    file.bytes.resize(file.durable);
    file.bytes += file.cut_off;
  } else if (file.bytes.size() > file.durable) {
    file.bytes.resize(file.durable + static_cast<std::size_t>(random_.below(file.bytes.size() - file.durable + 1)));
    const std::uint64_t fate = random_.below(3);  // whole, zeros, garbage
    const std::size_t damaged = std::min({file.bytes.size() - file.durable, kGarbage});
    if (fate > 0 && damaged > 0) {
      const std::size_t bad = 1 + static_cast<std::size_t>(random_.below(damaged));
      for (std::size_t i = file.bytes.size() - bad; i < file.bytes.size(); ++i) {
        file.bytes[i] = fate == 1 ? '\0' : static_cast<char>(random_.below(256));
      }
    }
  }
  file.durable = file.bytes.size();
  file.cut_off.clear();
  file.doomed.clear();
}

void FaultyDisk::power_loss() {
  ++processes_;
  ++boots_;
  Names after;
  Names all = durable_names_;
  for (const auto& [name, file] : names_) all[name] = file;
  for (const auto& [name, file] : all) {
    const auto now = names_.find(name);
    const auto before = durable_names_.find(name);
    const bool is_now = now != names_.end();
    const bool was = before != durable_names_.end();
    if (is_now && was && now->second == before->second) {
      after.emplace(name, file);
    } else if (random_.below(2) == 0) {
      if (is_now) after.emplace(name, now->second);
    } else if (was) {
      after.emplace(name, before->second);
    }
  }
  names_ = std::move(after);
  durable_names_ = names_;
  for (const auto& [name, file] : names_) lose_power(*file);
}

void FaultyDisk::flip_bit(const std::string& name, std::uint64_t bit) {
  char& byte = names_.at(name)->bytes.at(static_cast<std::size_t>(bit / 8));
  byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << (bit % 8)));
}

void FaultyDisk::cut(const std::string& name, std::uint64_t keep) {
  File& file = *names_.at(name);
  shorten(file, static_cast<std::size_t>(keep));
  file.cut_off.clear();
}

void FaultyDisk::erase(const std::string& name) {
  names_.erase(name);
  durable_names_.erase(name);
}

void FaultyDisk::put(const std::string& name, std::string bytes) {
  auto file = std::make_shared<File>();
  file->durable = bytes.size();
  file->bytes = std::move(bytes);
  names_[name] = durable_names_[name] = std::move(file);
}

std::uint64_t FaultyDisk::used() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, file] : names_) bytes += file->bytes.size();
  return bytes;
}

std::string_view FaultyDisk::peek(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::string_view() : found->second->bytes;
}

bool FaultyDisk::gave_up() const {
  return std::any_of(names_.begin(), names_.end(), [](const auto& named) { return !named.second->doomed.empty(); });
}

std::map<std::string, std::string> FaultyDisk::contents() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : names_) out[name] = file->bytes;
  return out;
}

}  // namespace orla::base
