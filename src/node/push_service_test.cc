#include "node/push_service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace orla::node {
namespace {

using Kind = PushOutcome::Kind;
using nlohmann::json;

// 'a' * 1000 by `gzip -9n`, so that nothing of ours made it.
const std::string kThousand(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x4c\x1c\x05\xa3\x60\x14\x0c\x77\x00\x00"
    "\x03\xda\x38\x9a\xe8\x03\x00\x00",
    29);

class PushServiceTest : public ::testing::Test {
 protected:
  HttpRequest request(const std::string& body, std::map<std::string, std::string> headers = {}) const {
    HttpRequest r;
    r.method = "POST";
    r.path = "/write";
    r.body = body;
    r.headers = std::move(headers);
    return r;
  }
  // The answer, after the role gave this outcome.
  HttpResponse answer(const HttpRequest& request, PushOutcome outcome = {}) {
    std::optional<HttpResponse> response = service_->handle(request);
    EXPECT_TRUE(response.has_value());
    if (!response) return {};
    if (!response->later) return *response;
    HttpResponse last;
    response->later([&](HttpResponse r) { last = std::move(r); });
    EXPECT_EQ(sent_.size(), 1u);
    auto [push, done] = std::move(sent_.back());
    sent_.clear();
    pushed_ = std::move(push);
    done(outcome);
    return last;
  }
  static std::string header(const HttpResponse& response, const std::string& name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  base::SystemClock clock_;
  std::vector<std::pair<Push, PushDone>> sent_;
  Push pushed_;
  std::shared_ptr<PushService> service_ = std::make_shared<PushService>(
      "edge/0", clock_, PushService::Limits{2000, 10, 100},
      [this](Push push, PushDone done) { sent_.emplace_back(std::move(push), std::move(done)); });
};

TEST(UnpackGzip, IsBounded) {
  EXPECT_EQ(unpack_gzip(kThousand, 1000).value(), std::string(1000, 'a'));
  EXPECT_EQ(unpack_gzip(kThousand + kThousand, 2000).value(), std::string(2000, 'a'));  // two members
  EXPECT_EQ(unpack_gzip(kThousand, 999).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(unpack_gzip(kThousand.substr(0, 20), 1000).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unpack_gzip("m a=1", 1000).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unpack_gzip("", 1000).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PushServiceTest, HandsOnWhatItReads) {
  HttpRequest r = request("m,t=1 a=1 5\nm,t=1 a=2,b=3 6", {{"orla-producer", "p"}, {"orla-sequence", "12"}});
  r.query = {{"precision", "ms"}, {"db", "x"}};
  EXPECT_EQ(answer(r).status, 204);
  EXPECT_EQ(pushed_.batch.producer, "p");
  EXPECT_EQ(pushed_.batch.producer_sequence, 12u);
  EXPECT_EQ(pushed_.batch.received, 3u);
  EXPECT_EQ(pushed_.batch.samples.times, (std::vector<model::Time>{model::from_ns(5'000'000), model::from_ns(6'000'000),
                                                                   model::from_ns(6'000'000)}));
  EXPECT_EQ(pushed_.series->since(0)[1], (model::Series{"m_b", {{"t", "1"}}}));
  EXPECT_EQ(pushed_.bytes, r.body.size());
}

TEST_F(PushServiceTest, SaysWhatBecameOfIt) {
  const HttpRequest good = request("m a=1 5");
  const auto outcome = [](Kind kind) { return PushOutcome{kind, "because"}; };
  for (const Kind kind : {Kind::kBusy, Kind::kTooMuch, Kind::kUnknown}) {
    const HttpResponse r = answer(good, outcome(kind));
    EXPECT_EQ(r.status, kind == Kind::kTooMuch ? 429 : 503);
    EXPECT_EQ(header(r, "Retry-After"), "1");
    const std::string message = json::parse(r.body).at("message");
    EXPECT_EQ(message.find("because"), 0u);
    EXPECT_EQ(message.find("nothing of this push was taken") == message.npos, kind == Kind::kUnknown) << message;
  }
  const HttpResponse again = answer(good, outcome(Kind::kDuplicate));
  EXPECT_EQ(again.status, 204);
  EXPECT_EQ(header(again, "Orla-Duplicate"), "true");

  PushOutcome some;
  some.late = 2;
  some.unmatched = 3;
  const HttpResponse kept = answer(good, some);
  EXPECT_EQ(kept.status, 204);
  EXPECT_EQ(header(kept, "Orla-Late"), "2");
  EXPECT_EQ(header(kept, "Orla-Unmatched"), "3");
  EXPECT_EQ(header(kept, "Orla-Dropped"), "");

  PushOutcome future;
  future.rejected = 1;
  const HttpResponse partial = answer(request("m a=1 5\nm a=2 6\nbad\nm c=\"x\" 7"), future);
  EXPECT_EQ(partial.status, 400);
  const json said = json::parse(partial.body);
  EXPECT_EQ(said.at("accepted"), 1);
  EXPECT_EQ(said.at("rejected"), 3);
  EXPECT_EQ(said.at("errors").size(), 2u);
  EXPECT_NE(said.at("message").get<std::string>().find("`future`"), std::string::npos);

  PushStatus status;
  service_->fill(status);
  EXPECT_EQ(status.answers, (std::vector<std::pair<int, std::uint64_t>>{{204, 2}, {400, 1}, {429, 1}, {503, 2}}));
}

TEST_F(PushServiceTest, WhatIsUnderWayIsBounded) {
  const HttpRequest r = request("m a=1 5\n" + std::string(52, '#'));  // 60 of 100 bytes
  std::optional<HttpResponse> first = service_->handle(r);
  ASSERT_TRUE(first && first->later);
  EXPECT_EQ(service_->handle(r)->status, 429);
  HttpResponse done;
  first->later([&](HttpResponse response) { done = std::move(response); });
  sent_.at(0).second({});
  EXPECT_EQ(done.status, 204);
  sent_.clear();
  EXPECT_EQ(answer(r).status, 204);
  // Nor is there room after refusals that were none of this bound.
  EXPECT_EQ(answer(request("m a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1")).status, 413);
  EXPECT_EQ(answer(r).status, 204);
}

TEST_F(PushServiceTest, OtherPathsAreNotItsOwn) {
  HttpRequest r;
  r.method = "GET";
  r.path = "/metrics";
  EXPECT_FALSE(service_->handle(r));
  r.path = "/write";
  EXPECT_EQ(service_->handle(r)->status, 405);
  r.path = "/ping";
  EXPECT_EQ(service_->handle(r)->status, 204);
  r.path = "/health";
  EXPECT_EQ(json::parse(service_->handle(r)->body).at("status"), "pass");
}

}  // namespace
}  // namespace orla::node
