// What every runtime promises, tried on each row of the table, and the way from an image to its runtime.
#include "function/runtimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/folder_entries.h"
#include "function/call_for_test.h"
#include "function/wasm_for_test.h"

namespace orla::function {
namespace {

using ::testing::HasSubstr;

// As a process in mode http: its query says what it does.
constexpr char kHttpServer[] = R"(#!/usr/bin/python3
import http.server, os, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        if self.path.endswith('?hang'): time.sleep(60)
        if self.path.endswith('?fail'):
            self.close_connection = True
            return
        pieces = []
        if self.headers.get('Transfer-Encoding') == 'chunked':
            while (size := int(self.rfile.readline(), 16)) > 0:
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else: pieces.append(self.rfile.read(int(self.headers.get('Content-Length', 0))))
        body = b''.join(pieces)
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True
Server(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
)";

// A function that a kit brings: what it deploys, and the query that makes it do its part.
struct Sample {
  std::string image;
  std::string query;
  std::string env_process;
  std::map<std::string, std::string> environment;
};

// One way to write functions for a runtime. Parts:
//   echo  answers the body
//   fail  breaks without an answer; a kit whose functions never do has none
//   hang  never answers
struct Kit {
  std::string name;
  std::string runtime;
  // Fills a fresh folder of images.
  void (*prepare)(const std::filesystem::path& images);
  std::map<std::string, Sample> samples;
};

void copy_wasm(const std::filesystem::path& images) {
  for (const char* name : {"test_command", "test_handler"}) {
    const auto bytes = base::read_file(built_wasm(name), 1 << 24);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_TRUE(base::write_file_atomically(images / (std::string(name) + ".wasm"), *bytes).ok());
  }
}

void write_scripts(const std::filesystem::path& images) {
  const std::pair<const char*, const char*> scripts[] = {
      {"echo", "#!/bin/sh\nexec cat\n"},
      {"crash", "#!/bin/sh\nexec python3 -c 'import ctypes; ctypes.string_at(0)'\n"},
      {"exit3", "#!/bin/sh\necho broken >&2; exit 3\n"},
      {"hang", "#!/bin/sh\nexec sleep 60\n"},
      {"serve", kHttpServer}};
  for (const auto& [name, text] : scripts) {
    ASSERT_TRUE(base::write_file_atomically(images / name, text).ok());
    ASSERT_EQ(::chmod((images / name).c_str(), 0755), 0);
  }
}

std::vector<Kit> kits() {
  return {{"WasmCommand",
           "wasm",
           copy_wasm,
           {{"echo", {"test_command.wasm", "echo", "", {}}},
            {"fail", {"test_command.wasm", "abort", "", {}}},
            {"hang", {"test_command.wasm", "loop", "", {}}}}},
          {"WasmStreaming",
           "wasm",
           copy_wasm,
           {{"echo", {"test_command.wasm", "echo", "", {{"mode", "streaming"}}}},
            {"fail", {"test_command.wasm", "exit3", "", {{"mode", "streaming"}}}},
            {"hang", {"test_command.wasm", "sleep", "", {{"mode", "streaming"}}}}}},
          {"WasmHandler",
           "wasm",
           copy_wasm,
           {{"echo", {"test_handler.wasm", "echo", "", {}}},
            {"fail", {"test_handler.wasm", "trap", "", {}}},
            {"hang", {"test_handler.wasm", "loop", "", {}}}}},
          {"ProcessStreaming",
           "process",
           write_scripts,
           {{"echo", {"echo", "", "", {}}}, {"fail", {"crash", "", "", {}}}, {"hang", {"hang", "", "", {}}}}},
          {"ProcessSerializing",
           "process",
           write_scripts,
           {{"echo", {"echo", "", "", {{"mode", "serializing"}}}},
            {"fail", {"exit3", "", "", {{"mode", "serializing"}}}},
            {"hang", {"hang", "", "", {{"mode", "serializing"}}}}}},
          {"ProcessHttp",
           "process",
           write_scripts,
           {{"echo", {"serve", "", "", {{"mode", "http"}}}},
            {"fail", {"serve", "fail", "", {{"mode", "http"}}}},
            {"hang", {"serve", "hang", "", {{"mode", "http"}}}}}},
          {"Native",
           "native",
           [](const std::filesystem::path&) {},
           {{"echo", {"native/echo", "", "", {}}}, {"hang", {"native/primes", "n=10000000000", "", {}}}}}};
}

// A body that keeps its reader waiting until it is released.
class HeldBody final : public RequestBody {
 public:
  absl::StatusOr<std::size_t> read(char*, std::size_t) override {
    reading.store(true);
    while (!released.load()) std::this_thread::yield();
    return std::size_t{0};
  }
  std::atomic<bool> reading{false};
  std::atomic<bool> released{false};
};

class EachRuntime : public ::testing::TestWithParam<Kit> {
 protected:
  EachRuntime() : place_(*base::TemporaryDirectory::create("orla-runtimes")) {
    EXPECT_TRUE(base::make_directories(place_.path() / "images").ok());
    GetParam().prepare(place_.path() / "images");
    RuntimeSettings settings;
    settings.state = place_.path() / "state";
    runtimes_ = make_runtimes(settings, clock_);
  }
  ~EachRuntime() override {
    instance_ = nullptr;
    module_ = nullptr;
  }

  Runtime& runtime() {
    const auto found = std::find_if(runtimes_.begin(), runtimes_.end(),
                                    [](const auto& runtime) { return runtime->name() == GetParam().runtime; });
    EXPECT_NE(found, runtimes_.end());
    return **found;
  }
  ModuleSpec spec(const std::string& part) {
    const Sample& sample = GetParam().samples.at(part);
    ModuleSpec spec;
    spec.spec.key.name = part;
    spec.spec.image = sample.image;
    spec.spec.env_process = sample.env_process;
    spec.spec.environment = sample.environment;
    const absl::StatusOr<FunctionOptions> options = read_options(spec.spec);
    EXPECT_TRUE(options.ok()) << options.status();
    if (options.ok()) spec.options = *options;
    const auto image = find_image(place_.path() / "images", sample.image, sample.env_process);
    EXPECT_TRUE(image.ok()) << image.status();
    if (image.ok()) {
      EXPECT_EQ(image->runtime, GetParam().runtime);
      spec.image = image->path;
    }
    spec.log = &lines_;
    return spec;
  }
  void load(const ModuleSpec& spec) {
    instance_ = nullptr;
    absl::StatusOr<std::unique_ptr<Module>> module = runtime().load(spec);
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = *std::move(module);
  }
  Instance& start() {
    Cancellation cancellation;
    auto started = module_->start("replica-1", clock_.steady_now() + std::chrono::seconds(20), cancellation);
    EXPECT_TRUE(started.ok()) << started.status();
    instance_ = *std::move(started);
    return *instance_;
  }
  Instance& started(const std::string& part) {
    load(spec(part));
    return start();
  }
  CallResult run(const std::string& part, CallForTest& call, Instance& instance) {
    prepare(part, call);
    return call.run(instance);
  }
  void prepare(const std::string& part, CallForTest& call) {
    call.head.query = GetParam().samples.at(part).query;
    call.head.headers.emplace_back("Content-Type", "application/octet-stream");
    call.head.deadline = clock_.steady_now() + std::chrono::seconds(20);
  }

  base::SystemClock clock_;
  base::TemporaryDirectory place_;
  KeptLines lines_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Instance> instance_;
};

TEST_P(EachRuntime, AReplicaIsWhatItPromises) {
  Instance& instance = started("echo");
  EXPECT_EQ(instance.name(), "replica-1");
  EXPECT_GT(instance.concurrency(), 0U);
  EXPECT_TRUE(instance.usable());
  EXPECT_GE(instance.usage().cpu_seconds, 0);
}

TEST_P(EachRuntime, EchoesAnyBytes) {
  Instance& instance = started("echo");
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  for (const std::string& body : {std::string("hello"), std::string(), every_byte, std::string(300'000, 'x')}) {
    CallForTest call(body);
    call.head.content_length = body.size();
    const CallResult result = run("echo", call, instance);
    ASSERT_EQ(result.end, CallEnd::kDone) << result.message;
    EXPECT_TRUE(result.response_begun);
    EXPECT_TRUE(result.instance_usable);
    EXPECT_GE(result.seconds, 0);
    EXPECT_EQ(call.response.begins(), 1);
    EXPECT_EQ(call.response.status(), 200);
    EXPECT_TRUE(call.response.body() == body) << body.size();
  }
}

TEST_P(EachRuntime, TakesABodyOfUnknownLength) {
  Instance& instance = started("echo");
  CallForTest call;
  prepare("echo", call);
  RepeatedBody body("0123456789abcdef", 1 << 18);
  const CallResult result = call.run(instance, body);
  ASSERT_EQ(result.end, CallEnd::kDone) << result.message;
  const std::string answered = call.response.body();
  ASSERT_EQ(answered.size(), 16U << 18);
  EXPECT_TRUE(answered.ends_with("0123456789abcdef"));
}

TEST_P(EachRuntime, AFailureIsOfOneCallOnly) {
  if (!GetParam().samples.contains("fail")) GTEST_SKIP() << "its functions do not break";
  Instance& instance = started("fail");
  CallForTest call("x");
  const CallResult result = run("fail", call, instance);
  EXPECT_EQ(result.end, CallEnd::kFailed);
  EXPECT_FALSE(result.message.empty());
  if (result.response_begun) {
    EXPECT_EQ(call.response.begins(), 1);
  } else {
    EXPECT_EQ(call.response.begins(), 0);
  }
  // The same module still starts replicas.
  EXPECT_TRUE(result.instance_usable || !instance.usable());
  start();
}

TEST_P(EachRuntime, ADeadlineEndsACall) {
  Instance& instance = started("hang");
  CallForTest call;
  prepare("hang", call);
  call.head.deadline = clock_.steady_now() + std::chrono::milliseconds(50);
  const base::SteadyTime before = clock_.steady_now();
  const CallResult result = call.run(instance);
  EXPECT_EQ(result.end, CallEnd::kTimedOut) << result.message;
  EXPECT_LT(clock_.steady_now() - before, std::chrono::seconds(5));
}

TEST_P(EachRuntime, ACancellationEndsACall) {
  Instance& instance = started("hang");
  for (const auto& [reason, end] : {std::pair(CancelReason::kClientGone, CallEnd::kCancelled),
                                    std::pair(CancelReason::kTimeout, CallEnd::kTimedOut)}) {
    if (!instance_->usable()) break;
    CallForTest call;
    prepare("hang", call);
    std::thread canceller([&call, reason = reason] { call.cancellation.cancel(reason); });
    EXPECT_EQ(call.run(instance).end, end);
    canceller.join();
  }
}

TEST_P(EachRuntime, CallsRunSideBySide) {
  Instance& instance = started("echo");
  const std::uint32_t at_once = std::min(instance.concurrency(), 8U);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (std::uint32_t t = 0; t < at_once; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string body = "thread " + std::to_string(t) + " call " + std::to_string(i);
        CallForTest call(body);
        const CallResult result = run("echo", call, instance);
        EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
        if (call.response.body() == body) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, static_cast<int>(at_once) * 20);
}

TEST_P(EachRuntime, StopWaitsForCallsInProgress) {
  Instance& instance = started("echo");
  CallForTest call;
  prepare("echo", call);
  HeldBody body;
  CallResult result;
  std::thread caller([&] { result = call.run(instance, body); });
  while (!body.reading) std::this_thread::yield();
  std::thread releaser([&] { body.released = true; });
  instance.stop(std::chrono::seconds(20));
  caller.join();
  releaser.join();
  EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
}

TEST_P(EachRuntime, AnIdleModuleStartsAgain) {
  started("echo");
  instance_ = nullptr;
  module_->idle();
  Instance& instance = start();
  CallForTest call("again");
  EXPECT_EQ(run("echo", call, instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "again");
}

TEST_P(EachRuntime, LeavesNoDescriptorBehind) {
  const auto descriptors = [] { return base::folder_entries("/proc/self/fd")->size(); };
  started("echo");  // what is opened once is open
  instance_ = nullptr;
  const std::size_t before = descriptors();
  for (int i = 0; i < 10; ++i) {
    Instance& instance = start();
    CallForTest call("x");
    EXPECT_EQ(run("echo", call, instance).end, CallEnd::kDone);
    instance_ = nullptr;
  }
  EXPECT_LE(descriptors(), before);
}

INSTANTIATE_TEST_SUITE_P(Table, EachRuntime, ::testing::ValuesIn(kits()),
                         [](const ::testing::TestParamInfo<Kit>& kit) { return kit.param.name; });

TEST(Runtimes, EveryRowHasAKit) {
  const base::SystemClock clock;
  for (const auto& runtime : make_runtimes({}, clock)) {
    const std::vector<Kit> all = kits();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Kit& kit) { return kit.runtime == runtime->name(); }))
        << runtime->name();
  }
}

// --- From an image to its runtime -----------------------------------------------------------------------------------

class FindImage : public ::testing::Test {
 protected:
  FindImage() : place_(*base::TemporaryDirectory::create("orla-images")), images_(place_.path() / "images") {
    EXPECT_TRUE(base::make_directories(images_ / "one").ok());
    EXPECT_TRUE(base::make_directories(images_ / "two").ok());
    write(images_ / "a.wasm", std::string("\0asm\1\0\0\0", 8));
    write(images_ / "one" / "b.wasm", std::string("\0asm\1\0\0\0", 8));
    write(images_ / "one" / "notes.txt", "x");
    write(images_ / "two" / "c.wasm", std::string("\0asm\1\0\0\0", 8));
    write(images_ / "two" / "d.wasm", std::string("\0asm\1\0\0\0", 8));
    write(images_ / "tool", "#!/bin/sh\n");
    EXPECT_EQ(::chmod((images_ / "tool").c_str(), 0755), 0);
    write(images_ / "text", "plain");
    write(place_.path() / "outside.wasm", std::string("\0asm\1\0\0\0", 8));
    std::filesystem::create_symlink(place_.path() / "outside.wasm", images_ / "link.wasm");
  }
  static void write(const std::filesystem::path& path, std::string_view bytes) {
    ASSERT_TRUE(base::write_file_atomically(path, bytes).ok());
  }
  void is(std::string_view image, std::string_view env_process, std::string_view runtime, std::string_view path) {
    const absl::StatusOr<Image> found = find_image(images_, image, env_process);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->runtime, runtime);
    EXPECT_EQ(found->path, std::filesystem::weakly_canonical(images_) / path);
  }
  void is_refused(std::string_view image, absl::StatusCode code, std::string_view says) {
    const absl::StatusOr<Image> found = find_image(images_, image, "");
    EXPECT_EQ(found.status().code(), code) << found.status();
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(std::string(says)));
  }

  base::TemporaryDirectory place_;
  const std::filesystem::path images_;
};

TEST_F(FindImage, LooksAtTheFile) {
  is("a.wasm", "", "wasm", "a.wasm");
  is("./one/../a.wasm", "", "wasm", "a.wasm");
  is("one", "", "wasm", "one/b.wasm");
  is("one", "cat -", "process", "one");
  is("two", "cat", "process", "two");
  is("tool", "", "process", "tool");
}

TEST_F(FindImage, NativeOnesAreNames) {
  const absl::StatusOr<Image> found = find_image("", "native/matrix", "");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->runtime, "native");
  EXPECT_EQ(found->path, "matrix");
}

TEST_F(FindImage, SaysWhatIsWrong) {
  is_refused("", absl::StatusCode::kInvalidArgument, "is empty");
  is_refused("nothing", absl::StatusCode::kInvalidArgument, "no such file or folder");
  is_refused("two", absl::StatusCode::kInvalidArgument, "2 .wasm files");
  is_refused("text", absl::StatusCode::kInvalidArgument, "nor executable");
  is_refused("../outside.wasm", absl::StatusCode::kFailedPrecondition, "outside");
  is_refused("link.wasm", absl::StatusCode::kFailedPrecondition, "outside");
  is_refused("/etc/passwd", absl::StatusCode::kFailedPrecondition, "outside");
  is_refused(".", absl::StatusCode::kFailedPrecondition, "outside");
  is_refused("docker.io/library/alpine", absl::StatusCode::kFailedPrecondition, "registry");
  is_refused("functions/alpine:latest", absl::StatusCode::kFailedPrecondition, "registry");
  EXPECT_EQ(find_image("", "a.wasm", "").status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace orla::function
