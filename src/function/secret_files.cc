#include "function/secret_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/absl_view.h"

namespace orla::function {

absl::Status check_secret_name(std::string_view name) {
  const bool letters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
  if (name.empty() || name.size() > kMaxSecretNameBytes || !letters || name.front() == '.' || name.back() == '.' ||
      name.find("..") != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("the secret's name is \"{}\"; expected 1 to {} letters, digits, '-', '_' and single '.' inside",
                    name.substr(0, kMaxSecretNameBytes), kMaxSecretNameBytes));
  }
  return absl::OkStatus();
}

SecretFiles::Lease::~Lease() {
  let_go();
  const std::lock_guard lock(files_.mutex_);
  for (const FunctionKey& key : keys_) {
    const auto found = files_.secrets_.find(key);
    if (--found->second.leases > 0 || !found->second.removed) continue;
    files_.given_.remove(key.text()).IgnoreError();  // what stays is removed at the next start
    files_.secrets_.erase(found);
  }
}

void SecretFiles::Lease::let_go() {
  const std::lock_guard lock(files_.mutex_);
  if (!std::exchange(deployed_, false)) return;
  for (const FunctionKey& key : keys_) --files_.secrets_[key].deployed;
}

std::vector<std::pair<std::string, std::filesystem::path>> SecretFiles::Lease::files() const {
  std::vector<std::pair<std::string, std::filesystem::path>> files;
  for (const FunctionKey& key : keys_) files.emplace_back(key.name, files_.given_.path() / key.text());
  return files;
}

absl::StatusOr<std::unique_ptr<SecretFiles>> SecretFiles::open(std::filesystem::path folder, const Limits& limits,
                                                               base::Logger& log) {
  auto kept = base::FileFolder::open(folder);
  if (!kept.ok()) return kept.status();
  auto given = base::FileFolder::open(folder / "given");
  if (!given.ok()) return given.status();
  const auto names = kept->list();
  if (!names.ok()) return names.status();
  std::unique_ptr<SecretFiles> files(new SecretFiles(*std::move(kept), *std::move(given), limits));
  for (const std::string& name : *names) {
    const auto value = files->kept_.read(name, limits.bytes);
    const absl::Status copied =
        value.ok() ? files->given_.write(name, *value, base::FileMode::kOwnerReads) : value.status();
    if (!copied.ok()) {
      log.error("the secret {} cannot be taken up: {}", name, base::message(copied));
      continue;
    }
    files->secrets_.emplace(key_of(name), Secret{});
  }
  const auto copies = files->given_.list();
  if (!copies.ok()) return copies.status();
  for (const std::string& name : *copies) {
    if (files->secrets_.contains(key_of(name))) continue;
    if (const absl::Status removed = files->given_.remove(name); !removed.ok()) return removed;
  }
  return files;
}

std::vector<FunctionKey> SecretFiles::list(std::string_view space) const {
  std::vector<FunctionKey> keys;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, secret] : secrets_) {
    if (!secret.removed && (space.empty() || key.space == space)) keys.push_back(key);
  }
  return keys;
}

SecretFiles::Secret* SecretFiles::find(const FunctionKey& key) {
  const auto found = secrets_.find(key);
  return found == secrets_.end() || found->second.removed ? nullptr : &found->second;
}

absl::Status SecretFiles::write(const FunctionKey& key, std::string_view value) const {
  if (value.size() > limits_.bytes) {
    return absl::InvalidArgumentError(
        fmt::format("the secret has {} bytes; at most {} are kept (limit secret_bytes)", value.size(), limits_.bytes));
  }
  // What is kept is first: a crash in between is made good at the next start.
  if (absl::Status status = kept_.write(key.text(), value, base::FileMode::kOwner); !status.ok()) return status;
  return given_.write(key.text(), value, base::FileMode::kOwnerReads);
}

absl::Status SecretFiles::add(const FunctionKey& key, std::string_view value) {
  if (absl::Status status = check_secret_name(key.name); !status.ok()) return status;
  if (absl::Status status = check_label("namespace", key.space); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (find(key) != nullptr) return absl::AlreadyExistsError(fmt::format("the secret {} exists already", key.text()));
  if (secrets_.size() >= limits_.secrets) {
    return absl::ResourceExhaustedError(
        fmt::format("there are {} secrets already (limit secrets); remove some", limits_.secrets));
  }
  if (absl::Status status = write(key, value); !status.ok()) {
    kept_.remove(key.text()).IgnoreError();  // what was refused is not to be found at the next start
    return status;
  }
  secrets_[key].removed = false;
  return absl::OkStatus();
}

absl::Status SecretFiles::change(const FunctionKey& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  if (find(key) == nullptr) return absl::NotFoundError(fmt::format("there is no secret {}", key.text()));
  return write(key, value);
}

absl::Status SecretFiles::remove(const FunctionKey& key) {
  const std::lock_guard lock(mutex_);
  Secret* const secret = find(key);
  if (secret == nullptr) return absl::NotFoundError(fmt::format("there is no secret {}", key.text()));
  if (secret->deployed > 0) {
    return absl::FailedPreconditionError(fmt::format(
        "the secret {} is in use by {} deployed functions; remove those first", key.text(), secret->deployed));
  }
  if (absl::Status status = kept_.remove(key.text()); !status.ok()) return status;
  if (secret->leases > 0) {
    secret->removed = true;
    return absl::OkStatus();
  }
  secrets_.erase(key);
  return given_.remove(key.text());
}

absl::StatusOr<std::unique_ptr<SecretFiles::Lease>> SecretFiles::lease(std::string_view space,
                                                                       const std::vector<std::string>& names) {
  std::vector<FunctionKey> keys;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    FunctionKey key{name, std::string(space)};
    if (find(key) == nullptr) {
      return absl::InvalidArgumentError(fmt::format("there is no secret \"{}\" in the namespace {}", name, space));
    }
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
  for (const FunctionKey& key : keys) {
    ++secrets_[key].leases;
    ++secrets_[key].deployed;
  }
  return std::make_unique<Lease>(*this, std::move(keys));
}

}  // namespace orla::function
