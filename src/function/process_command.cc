#include "function/process_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

namespace orla::function {

namespace {

bool runnable(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::filesystem::path> look_up(std::string_view word, const std::filesystem::path& directory,
                                             std::string_view path) {
  const std::filesystem::path name(word);
  if (word.empty()) return std::nullopt;
  if (name.is_absolute()) return runnable(name) ? std::optional(name) : std::nullopt;
  if (runnable(directory / name)) return (directory / name).lexically_normal();
  if (word.find('/') != std::string_view::npos) return std::nullopt;
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), folder.size() + 1));
    if (folder.starts_with('/') && runnable(std::filesystem::path(folder) / name)) {
      return std::filesystem::path(folder) / name;
    }
  }
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t space = text.find(' ');
    words.emplace_back(text.substr(0, space));
    if (space == std::string_view::npos) return words;
    text.remove_prefix(space + 1);
  }
}

}  // namespace

absl::StatusOr<Command> make_command(const std::filesystem::path& image, std::string_view env_process,
                                     std::string_view path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(image, error);
  if (!folder && !std::filesystem::is_regular_file(image, error)) {
    return absl::InvalidArgumentError(fmt::format(
        "image \"{}\" is neither a file nor a directory; an executable file, or a directory and envProcess, "
        "was expected",
        image.string()));
  }
  Command command;
  command.directory = folder ? image.string() : image.parent_path().string();
  if (env_process.empty()) {
    if (folder) {
      return absl::InvalidArgumentError(
          fmt::format("image \"{}\" is a directory: envProcess has to name the program to run in it", image.string()));
    }
    if (!runnable(image)) {
      return absl::InvalidArgumentError(fmt::format(
          "image \"{}\" is not executable; make it so (chmod +x), or name a program in envProcess", image.string()));
    }
    command.program = image.string();
    command.argv = {image.string()};
    return command;
  }
  command.argv = split(env_process);
  const std::string& first = command.argv.front();
  if (!folder && runnable(image) &&
      (first == image.string() || std::filesystem::path(first).filename() == image.filename())) {
    command.program = image.string();
    return command;
  }
  const std::optional<std::filesystem::path> found = look_up(first, command.directory, path);
  if (!found.has_value()) {
    return absl::InvalidArgumentError(
        fmt::format("envProcess \"{}\" begins with \"{}\", which is no executable in \"{}\" "
                    "and none in PATH ({})",
                    env_process, first, command.directory, path));
  }
  command.program = found->string();
  return command;
}

std::vector<std::string> function_environment(const FunctionSpec& spec, const base::Environment& own) {
  std::map<std::string, std::string> all{{"HOME", "/tmp"},
                                         {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}};
  for (const char* name : {"PATH", "LANG", "TZ"}) {
    if (std::optional<std::string> value = own.get(name); value.has_value()) all[name] = *std::move(value);
  }
  for (const auto& [name, value] : spec.environment) all[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : all) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

std::string_view value_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace orla::function
