// orla fn build DIR
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "base/absl_view.h"
#include "base/spawner.h"
#include "fn.h"

namespace orla::apps {

namespace {

constexpr char kPackages[] =
    "clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32 libc++-14-dev-wasm32 libc++abi-14-dev-wasm32";
constexpr std::chrono::minutes kPatience{10};

struct Options {
  std::string directory;
  std::string output;
  bool command = false;
};

int build(const Options& o) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(o.directory, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::vector<std::string> sources;
  bool cpp = false;
  for (std::filesystem::directory_iterator it(folder, error), end;  // tidy: allow files: the sources are listed
       !error && it != end; it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if (extension != ".c" && extension != ".cc" && extension != ".cpp") continue;
    cpp = cpp || extension != ".c";
    sources.push_back(it->path().string());
  }
  if (error || sources.empty()) {
    fmt::print(stderr, "orla fn build: {}: {}\n", o.directory,
               error ? error.message() : "no .c, .cc or .cpp file in it (python and js need no build)");
    return kUsage;
  }
  std::sort(sources.begin(), sources.end());
  if (cpp && std::any_of(sources.begin(), sources.end(), [](const std::string& s) { return s.ends_with(".c"); })) {
    fmt::print(stderr, "orla fn build: {}: C and C++ in one folder; rename the .c files to .cc\n", o.directory);
    return kUsage;
  }
  const std::string output = o.output.empty() ? (folder / (folder.filename().string() + ".wasm")).string() : o.output;
  base::ProcessSpec spec;
  spec.argv = {cpp ? "clang++-14" : "clang-14", "--target=wasm32-wasi", "-O2", "-Wall", "-Wextra",
               "-I" + folder.string(),          "-Wl,--strip-debug"};
  if (cpp) spec.argv.insert(spec.argv.end(), {"-std=c++20", "-fno-exceptions", "-fno-rtti"});
  if (!o.command) spec.argv.push_back("-mexec-model=reactor");
  spec.argv.insert(spec.argv.end(), sources.begin(), sources.end());
  spec.argv.insert(spec.argv.end(), {"-o", output});
  const absl::StatusOr<base::Finished> ended = base::run_to_end(spec, kPatience);
  if (!ended.ok()) {
    fmt::print(stderr, "orla fn build: {}\nIt needs: apt-get install --no-install-recommends {}\n",
               base::message(ended.status()), kPackages);
    return kFailed;
  }
  fmt::print(stderr, "{}{}", ended->output, ended->errors);
  if (!ended->status.success()) {
    // A header or library that is missing belongs to one of the packages.
    const bool missing = ended->errors.find("file not found") != std::string::npos ||
                         ended->errors.find("cannot open") != std::string::npos ||
                         ended->errors.find("unable to execute") != std::string::npos;
    fmt::print(
        stderr, "orla fn build: {} did not compile{}{}\n", o.directory,
        missing ? "; if a header or library of the system is missing: apt-get install --no-install-recommends " : "",
        missing ? kPackages : "");
    return kFailed;
  }
  fmt::print("{}\n", output);
  return kOk;
}

}  // namespace

void add_fn_build(CLI::App& fn, Chosen& chosen) {
  auto options = std::make_shared<Options>();  // with the callback
  CLI::App* command = fn.add_subcommand("build", "Compile a function in C or C++ to WebAssembly");
  command->add_option("DIR", options->directory, "Folder with its sources")->required();
  command->add_option("-o,--output", options->output, "The module; else DIR/NAME.wasm, named as the folder");
  command->add_flag("--command", options->command,
                    "It has a main(): a WASI command, body on standard input, response on standard output");
  command->footer("Example:\n  orla fn build hello\n\nUses clang-14 and Debian's wasi-libc.");
  command->callback([options, &chosen] { chosen.run = [options] { return build(*options); }; });
}

}  // namespace orla::apps
