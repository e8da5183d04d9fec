// orla fn new NAME --lang LANGUAGE
#include <fmt/format.h>

#include <filesystem>

#include "base/absl_view.h"
#include "base/files.h"
#include "fn.h"
#include "function/spec.h"

namespace orla::apps {

namespace {

// "cpp/handler.cc" and its text, in which __NAME__ stands for the function's.
struct Template {
  std::string_view path;
  std::string_view text;
};
constexpr Template kTemplates[] = {
#include "fn_templates.inc"
};
constexpr std::string_view kNamePlace = "__NAME__";

struct Options {
  std::string name;
  std::string language;
};

int make(const Options& o) {
  if (const absl::Status named = function::check_label("function name", o.name); !named.ok()) {
    fmt::print(stderr, "orla fn new: {}\n", base::message(named));
    return kUsage;
  }
  const std::filesystem::path folder = o.name;
  if (base::exists(folder)) {
    fmt::print(stderr, "orla fn new: {} exists already; nothing was written\n", o.name);
    return kUsage;
  }
  absl::Status done = base::make_directories(folder);
  std::string written;
  for (const Template& one : kTemplates) {
    const std::filesystem::path path(one.path);
    if (path.parent_path() != o.language || !done.ok()) continue;
    std::string text(one.text);
    for (std::size_t at; (at = text.find(kNamePlace)) != std::string::npos;)
      text.replace(at, kNamePlace.size(), o.name);
    done = base::write_file_atomically(folder / path.filename(), text);
    written += fmt::format("  {}\n", (folder / path.filename()).string());
  }
  if (!done.ok()) {
    fmt::print(stderr, "orla fn new: {}\n", base::message(done));
    return kFailed;
  }
  fmt::print("{}{}/README.md says how it is deployed.\n", written, o.name);
  return kOk;
}

}  // namespace

void add_fn_new(CLI::App& fn, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = fn.add_subcommand("new", "A folder to write a function in");
  command->add_option("NAME", options->name, "Name of the function and the folder")->required();
  command->add_option("--lang", options->language, "cpp and c: WebAssembly; python and js: a process")
      ->required()
      ->check(CLI::IsMember({"cpp", "c", "python", "js"}));
  command->footer("Example:\n  orla fn new hello --lang cpp\n  orla fn build hello");
  command->callback([options, &chosen] { chosen.run = [options] { return make(*options); }; });
}

}  // namespace orla::apps
