#include "node/async_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>

#include "base/files.h"
#include "node/gateway_test_host.h"
#include "node/http_server.h"

namespace orla::node {
namespace {

using function::InvokeEnd;
using function::InvokeResult;
using gateway_test::FakeHost;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kPatience{20};

// Texts as they come from other threads.
class Heard {
 public:
  void add(const std::string& text) {
    {
      const std::lock_guard lock(mutex_);
      texts_.push_back(text);
    }
    changed_.notify_all();
  }
  // Once there are so many.
  std::vector<std::string> all(std::size_t size) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return texts_.size() >= size; });
    return texts_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

InvokeResult answer(function::Invocation& call, int status, function::Headers headers = {},
                    const std::string& body = "") {
  EXPECT_TRUE(call.response.respond(status, std::move(headers), body).ok());
  return {};
}

class AsyncDeskTest : public ::testing::Test {
 protected:
  AsyncDeskTest() : directory_(::testing::TempDir() + "/async_desk_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    settings_.path = directory_ + "/calls.db";
    settings_.fsync = store::Fsync::kOff;
    settings_.callbacks = *CallbackPolicy::parse({"127.0.0.0/8"});
    settings_.limits.callback_wait = milliseconds(1);
  }
  ~AsyncDeskTest() override {
    host_.drain({});
    desk_.reset();
    std::filesystem::remove_all(directory_);
  }

  void open() {
    desk_.reset();
    auto desk = AsyncDesk::open(settings_, host_, clock_, log_);
    ASSERT_TRUE(desk.ok()) << desk.status();
    desk_ = *std::move(desk);
  }
  absl::Status accept(const std::string& id, const std::string& callback = "", const std::string& name = "f") {
    AsyncCall call;
    call.key = function::key_of(name);
    call.head.call_id = id;
    call.head.path = "/a";
    call.head.query = "b=c";
    call.head.headers = {{"X-Call-Id", id}};
    call.body = "body of " + id;
    call.callback_url = callback;
    std::promise<absl::Status> said;
    desk_->accept(call, [&](const absl::Status& status) { said.set_value(status); });
    return said.get_future().get();
  }
  // Annotated so that an attempt follows the other at once.
  void add(const std::string& name, FakeHost::Code code, std::map<std::string, std::string> annotations = {}) {
    host_.add(name, std::move(code));
    function::FunctionSpec spec;
    spec.key = function::key_of(name);
    spec.annotations = std::move(annotations);
    spec.annotations.emplace("com.openfaas.retry.min_wait", "0");
    spec.annotations.emplace("com.openfaas.retry.max_wait", "1ms");
    ASSERT_TRUE(host_.deploy(spec, function::Deploy::kUpdate).ok());
  }
  template <typename What>
  bool becomes(What what) {
    const base::SteadyTime end = clock_.steady_now() + kPatience;
    while (!what()) {
      if (clock_.steady_now() > end) return false;
      clock_.sleep(milliseconds(2));
    }
    return true;
  }

  const std::string directory_;
  base::SystemClock clock_;
  base::SilentLogger log_;
  FakeHost host_;
  AsyncSettings settings_;
  Heard heard_;
  std::unique_ptr<AsyncDesk> desk_;
};

TEST_F(AsyncDeskTest, AnAcceptedCallIsMadeOnceAsItCame) {
  add("f", [&](function::Invocation& call) {
    heard_.add(call.head.method + " " + call.head.path + "?" + call.head.query + " " + gateway_test::body_of(call));
    return answer(call, 200);
  });
  open();
  ASSERT_TRUE(accept("1").ok());
  EXPECT_THAT(heard_.all(1), ElementsAre("POST /a?b=c body of 1"));
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
  // The same id again is acknowledged, and not made again.
  ASSERT_TRUE(accept("1").ok());
  ASSERT_TRUE(accept("2").ok());
  EXPECT_THAT(heard_.all(2), ElementsAre("POST /a?b=c body of 1", "POST /a?b=c body of 2"));
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
  EXPECT_THAT(host_.counted(), ElementsAre(200, 200));
}

TEST_F(AsyncDeskTest, RefusesWhatCannotBeMade) {
  add("f", gateway_test::echo);
  settings_.callbacks = CallbackPolicy();
  settings_.limits.queue.calls = 0;
  open();
  EXPECT_TRUE(absl::IsNotFound(accept("1", "", "g")));
  EXPECT_TRUE(absl::IsInvalidArgument(accept("1", "http://127.0.0.1:1/")));
  EXPECT_TRUE(absl::IsInvalidArgument(accept("1", "nonsense")));
  EXPECT_TRUE(absl::IsResourceExhausted(accept("1")));
  EXPECT_TRUE(absl::IsNotFound(desk_->cancel("1")));
}

TEST_F(AsyncDeskTest, TriesAgainUntilItSucceeds) {
  int calls = 0;
  add("f", [&](function::Invocation& call) {
    heard_.add("call");
    return answer(call, ++calls < 3 ? 500 : 200);
  });
  open();
  ASSERT_TRUE(accept("1").ok());
  EXPECT_EQ(heard_.all(3).size(), 3);
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
  EXPECT_EQ(desk_->counts().dead, 0);
  EXPECT_EQ(desk_->counts().retries, 2);
}

TEST_F(AsyncDeskTest, WhatFailsForGoodIsADeadLetterThatCanBeReplayed) {
  bool works = false;
  std::mutex mutex;
  add("f",
      [&](function::Invocation& call) {
        const std::lock_guard lock(mutex);
        return answer(call, works ? 200 : 502);
      },
      {{"com.openfaas.retry.attempts", "2"}});
  open();
  ASSERT_TRUE(accept("1").ok());
  ASSERT_TRUE(becomes([&] { return desk_->counts().dead == 1; }));
  const function::FunctionKey key = function::key_of("f");
  const auto dead = desk_->dead(&key);
  ASSERT_TRUE(dead.ok()) << dead.status();
  ASSERT_EQ(dead->size(), 1);
  EXPECT_EQ(dead->front().attempts, 2);
  EXPECT_EQ(dead->front().status, 502);
  const function::FunctionKey other = function::key_of("g");
  EXPECT_THAT(*desk_->dead(&other), IsEmpty());
  {
    const std::lock_guard lock(mutex);
    works = true;
  }
  EXPECT_TRUE(desk_->replay("1").ok());
  EXPECT_TRUE(becomes([&] { return desk_->counts().dead == 0 && desk_->counts().waiting == 0; }));
  EXPECT_TRUE(absl::IsNotFound(desk_->replay("1")));
}

TEST_F(AsyncDeskTest, AStatusThatIsNotTriedAgainIsAnEnd) {
  add("f", [&](function::Invocation& call) { return answer(call, 404); });
  open();
  ASSERT_TRUE(accept("1").ok());
  EXPECT_TRUE(becomes([&] { return desk_->counts().attempts == 1 && desk_->counts().waiting == 0; }));
  EXPECT_EQ(desk_->counts().dead, 0);
}

TEST_F(AsyncDeskTest, ACallBackTellsTheResponse) {
  add("f", [&](function::Invocation& call) {
    return answer(call, 201, {{"X-Own", "1"}, {"Content-Type", "text/x"}, {"Connection", "close"}}, "answer");
  });
  auto server = HttpServer::start("127.0.0.1:0", {}, [&](const HttpRequest& request) {
    const auto header = [&](const std::string& name) {
      const auto found = request.headers.find(name);
      return found == request.headers.end() ? "-" : found->second;
    };
    heard_.add(request.method + " " + request.path + " " + header("x-own") + " " + header("content-type") + " " +
               header("x-call-id") + " " + header("x-function-status") + " " + header("x-function-name") + " " +
               header("x-retry") + " " + request.body);
    HttpResponse response;
    // The first one is not taken.
    response.status = heard_.all(1).size() == 1 ? 503 : 202;
    return response;
  });
  ASSERT_TRUE(server.ok()) << server.status();
  open();
  ASSERT_TRUE(accept("1", "http://" + (*server)->address() + "/back").ok());
  const std::string told = "POST /back 1 text/x 1 201 f.openfaas-fn 0 answer";
  EXPECT_THAT(heard_.all(2), ElementsAre(told, told));
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
  EXPECT_EQ(desk_->counts().callbacks_failed, 0);
}

TEST_F(AsyncDeskTest, ACallBackThatNobodyTakesIsGivenUp) {
  add("f", gateway_test::echo);
  settings_.limits.callback_attempts = 2;
  open();
  ASSERT_TRUE(accept("1", "http://127.0.0.1:1/").ok());
  EXPECT_TRUE(becomes([&] { return desk_->counts().callbacks_failed == 1 && desk_->counts().answered == 0; }));
  EXPECT_EQ(desk_->counts().waiting, 0);
}

// Receivers that are away hold up no call, and are told after a restart what was answered before it.
TEST_F(AsyncDeskTest, AnAnswerOutlivesItsDesk) {
  std::atomic<int> made = 0;
  add("f", [&](function::Invocation& call) { return answer(call, 200, {}, std::to_string(++made)); });
  settings_.limits.running_of_function = 1;
  settings_.limits.callbacks_in_memory = 1;
  settings_.limits.callback_wait = milliseconds(200);
  std::atomic<int> status = 503;
  auto server = HttpServer::start("127.0.0.1:0", {}, [&](const HttpRequest& request) {
    HttpResponse response;
    response.status = status;
    if (status == 200) heard_.add(request.body);
    return response;
  });
  ASSERT_TRUE(server.ok()) << server.status();
  open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(accept(std::to_string(i), "http://" + (*server)->address() + "/").ok());
  EXPECT_TRUE(becomes([&] { return made == 3 && desk_->counts().waiting == 0; }));
  EXPECT_EQ(desk_->counts().answered, 3);
  desk_.reset();
  status = 200;
  settings_.limits.callbacks_in_memory = 8;
  open();
  EXPECT_THAT(heard_.all(3), UnorderedElementsAre("1", "2", "3"));
  EXPECT_TRUE(becomes([&] { return desk_->counts().answered == 0; }));
  EXPECT_EQ(made, 3);
}

TEST_F(AsyncDeskTest, ARunningAndAQueuedCallCanBeCancelled) {
  add("f", [&](function::Invocation& call) {
    std::promise<void> told;
    const function::Cancellation::Subscription waits(call.cancellation, [&] { told.set_value(); });
    heard_.add(call.head.call_id);
    told.get_future().wait();
    return InvokeResult{InvokeEnd::kCancelled, "", {}, 0, false};
  });
  settings_.limits.running_of_function = 1;
  open();
  ASSERT_TRUE(accept("1").ok());
  ASSERT_TRUE(accept("2").ok());
  ASSERT_TRUE(accept("3").ok());
  EXPECT_THAT(heard_.all(1), ElementsAre("1"));
  EXPECT_TRUE(desk_->cancel("2").ok());
  EXPECT_TRUE(desk_->cancel("1").ok());
  EXPECT_THAT(heard_.all(2), ElementsAre("1", "3"));
  EXPECT_TRUE(desk_->cancel("3").ok());
  EXPECT_TRUE(absl::IsNotFound(desk_->cancel("3")));
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
  EXPECT_EQ(desk_->counts().dead, 0);
}

TEST_F(AsyncDeskTest, OneFunctionsFloodDoesNotHoldUpAnother) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  add("f", [&, released](function::Invocation& call) {
    released.wait();
    return answer(call, 200);
  });
  add("g", [&](function::Invocation& call) {
    heard_.add(call.head.call_id);
    return answer(call, 200);
  });
  settings_.limits.running_of_function = 2;
  open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(accept("f" + std::to_string(i)).ok());
  ASSERT_TRUE(accept("g", "", "g").ok());
  EXPECT_THAT(heard_.all(1), ElementsAre("g"));
  release.set_value();
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
}

TEST_F(AsyncDeskTest, WhatADrainEndedIsMadeAfterTheNextStart) {
  std::atomic<bool> draining = true;
  add("f", [&](function::Invocation& call) {
    heard_.add(draining ? "1" : "again " + call.head.call_id);
    return draining ? InvokeResult{InvokeEnd::kDraining, "", {}, 0, false} : answer(call, 200);
  });
  open();
  ASSERT_TRUE(accept("1").ok());
  EXPECT_THAT(heard_.all(1), ElementsAre("1"));
  desk_.reset();
  draining = false;
  open();
  EXPECT_THAT(heard_.all(2), ElementsAre("1", "again 1"));
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
}

TEST_F(AsyncDeskTest, ManyAreAcceptedAtOnce) {
  add("f", [&](function::Invocation& call) {
    heard_.add(call.head.call_id);
    return answer(call, 200);
  });
  open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(accept(std::to_string(t) + "." + std::to_string(i)).ok());
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> all = heard_.all(200);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), 200);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_TRUE(becomes([&] { return desk_->counts().waiting == 0; }));
}

TEST_F(AsyncDeskTest, ADamagedQueueIsSetAside) {
  add("f", [&](function::Invocation& call) { return answer(call, 200); });
  for (int i = 0; i < 2; ++i) {
    open();
    ASSERT_TRUE(accept(std::to_string(i)).ok());
    desk_.reset();
    std::filesystem::remove(settings_.path + "-wal");
    ASSERT_TRUE(base::write_file_atomically(settings_.path, std::string(5'000, 'x')).ok());
  }
  open();
  ASSERT_TRUE(accept("0").ok()) << "it is not known any more";
  EXPECT_TRUE(becomes([&] { return desk_->counts().accepted == 1 && desk_->counts().waiting == 0; }));
  EXPECT_TRUE(std::filesystem::exists(settings_.path + ".damaged"));
  EXPECT_TRUE(std::filesystem::exists(settings_.path + ".damaged-2"));
}

}  // namespace
}  // namespace orla::node
