#include "link/proto_codec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "link.pb.h"

namespace orla::link {
namespace {

using testing::HasSubstr;
namespace wire = ::orla::link::v1;

model::Range full_range(const std::string& node) {
  model::Range range{node, model::Epoch{0xFEDCBA9876543210}, 3, 5, {1, 2}, {UINT64_MAX, 4}, {}};
  range.note.publications = {{"load", model::from_ns(1377993600'000000000)}, {"work", model::kMinTime}};
  model::Ledger ledger;
  ledger.received = 100;
  ledger.aggregated = 80;
  ledger.unmatched = 5;
  ledger.late = {7, 0xABCDEF};
  ledger.rejected = {{"malformed", 2}, {"not_finite", 3}};
  ledger.rejected_set = {5, UINT64_MAX};
  ledger.dropped = {{"full", 1}};
  ledger.held = 2;
  range.note.ledgers = {{node + "/0", ledger}, {node + "/1", model::Ledger{}}};
  range.note.states = {{true, std::string("\0\xFFsnapshot", 10)}, {false, ""}};
  range.note.tombstones = {
      {3, 3, "damaged", {}, model::kMaxTime, model::kMinTime},
      {5, 5, "drop_oldest", {{node + "/0", 7}, {node + "/1", UINT64_MAX}}, model::from_ns(-60), model::from_ns(60)}};
  return range;
}

Dictionary small_dictionary() {
  const model::GroupDef plug{"plug_load", 77, 60'000'000'000, 3, {{"house", "3"}, {"plug", "7"}}};
  model::GroupDef other = plug;
  other.labels[1].second = std::string("\xFF\0", 2);
  const model::GroupDef house{"house_load", 78, 900'000'000'000, 0, {{"house", ""}}};
  const model::GroupDef all{"total", UINT64_MAX, 1, 15, {}};
  return {{{model::GroupId{0}, plug},
           {model::GroupId{1}, house},
           {model::GroupId{9}, other},
           {model::GroupId{UINT32_MAX}, all}}};
}

std::vector<UpMessage> ups() {
  return {
      Hello{kProtocolMajor, 7, "smart-grid", "edge-1", model::Layer::kAggregator},
      Hello{},
      small_dictionary(),
      Dictionary{},
      FrameMessage{12,
                   {full_range("edge-1"), full_range("edge-2"), model::Range{"z", model::Epoch{1}, 1, 1, {}, {}, {}}},
                   std::string("\0rows\xFF", 6)},
      FrameMessage{},
      OpenEpoch{UINT64_MAX, "edge-1", model::Epoch{5}, model::Epoch{UINT64_MAX}},
      Heartbeat{}};
}

std::vector<DownMessage> downs() {
  const model::Cursor some{"edge-1", model::Epoch{UINT64_MAX}, 1ULL << 62U, {8, 9}};
  const model::Cursor none{"edge-2", {}, 0, {}};
  model::Cursor lossy = some;
  lossy.node = "edge-3";
  lossy.tombstones = {{1, 1}, {7, 1ULL << 61U}};
  return {Welcome{kProtocolMajor, 2, "cloud", 250, 1ULL << 40U},
          Acknowledge{{some, none}},
          Acknowledge{{some, lossy, none, lossy}},
          Refused{4, RefusalReason::kCursor, {lossy}, "why"},
          Acknowledge{},
          Refused{4, RefusalReason::kCursor, {some}, "why"},
          Refused{4, RefusalReason::kDigest, {}, ""},
          Refused{4, RefusalReason::kFull, {none}, ""},
          Refused{4, RefusalReason::kMalformed, {}, ""},
          Opened{1, true, some, 0, {{true, "state"}, {false, "more"}}},
          Opened{2, false, none, std::nullopt, {}},
          Opened{3, true, lossy, 9, {}, {{2, 3}, {9, 9}}, {{"damaged", 4, {{"edge-1/0", 5}}}, {"drop_oldest", 1, {}}}},
          Rejected{"another major"},
          Heartbeat{}};
}

std::string one(absl::StatusOr<std::vector<std::string>> encoded) {
  EXPECT_TRUE(encoded.ok()) << encoded.status();
  if (!encoded.ok() || encoded->size() != 1) return "";
  return encoded->front();
}

std::string up_error(const wire::Up& up) {
  const auto decoded = decode_up(up.SerializeAsString());
  EXPECT_FALSE(decoded.ok());
  return std::string(decoded.status().message());
}

std::string down_error(const wire::Down& down) {
  const auto decoded = decode_down(down.SerializeAsString());
  EXPECT_FALSE(decoded.ok());
  return std::string(decoded.status().message());
}

TEST(ProtoCodec, EveryMessageComesBackAsItWas) {
  for (const UpMessage& message : ups()) {
    const auto decoded = decode_up(one(encode(message)));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_TRUE(decoded->has_value());
    EXPECT_TRUE(**decoded == message) << "kind " << message.index();
  }
  for (DownMessage message : downs()) {
    const auto decoded = decode_down(one(encode(message)));
    ASSERT_TRUE(decoded.ok()) << decoded.status() << " kind " << message.index();
    ASSERT_TRUE(decoded->has_value());
    EXPECT_TRUE(**decoded == message) << "kind " << message.index();
  }
}

TEST(ProtoCodec, TheBytesAreThoseOfTheContract) {
  // By hand, after the protobuf encoding: field 1 of Up, length 20; varint 1, varint 0 left out, "f", "n", LAYER_EDGE.
  EXPECT_EQ(one(encode(UpMessage(Hello{1, 0, "f", "n", model::Layer::kEdge}))), std::string("\x0A\x0A\x08\x01\x1A\x01"
                                                                                            "f\x22\x01n\x28\x01",
                                                                                            12));
  EXPECT_EQ(one(encode(UpMessage(Heartbeat{}))), std::string("\x2A\x00", 2));
  EXPECT_EQ(one(encode(DownMessage(Rejected{"no"}))), "\x2A\x04\x0A\x02no");
}

TEST(ProtoCodec, TombstonesThatDoNotAddUpAreRefused) {
  const auto refused = [](const std::function<void(wire::Cursors&)>& spoil) {
    wire::Down down;
    wire::Cursors& cursors = *down.mutable_acknowledge()->mutable_cursors();
    cursors.add_nodes("edge");
    cursors.add_epochs(1);
    cursors.add_lasts(9);
    cursors.add_chain_highs(0);
    cursors.add_chain_lows(0);
    cursors.add_tombstone_counts(2);
    for (const std::uint64_t number : {2, 5}) {
      cursors.add_tombstone_firsts(number);
      cursors.add_tombstone_lasts(number + 1);
    }
    spoil(cursors);
    return decode_down(down.SerializeAsString()).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](wire::Cursors&) {}));
  EXPECT_TRUE(refused([](wire::Cursors& c) { c.set_tombstone_counts(0, 1); }));
  EXPECT_TRUE(refused([](wire::Cursors& c) { c.set_tombstone_counts(0, UINT32_MAX); }));
  EXPECT_TRUE(refused([](wire::Cursors& c) { c.add_tombstone_counts(0); }));
  EXPECT_TRUE(refused([](wire::Cursors& c) { c.add_tombstone_lasts(9); }));
  EXPECT_TRUE(refused([](wire::Cursors& c) { c.set_tombstone_lasts(0, 5); })) << "overlaps the next";
  EXPECT_TRUE(refused([](wire::Cursors& c) { c.set_tombstone_firsts(1, 7); })) << "ends before it begins";
}

TEST(ProtoCodec, FieldsAndKindsOfANewerMinorAreSkipped) {
  wire::Up up;
  up.mutable_hello()->set_major(kProtocolMajor);
  up.mutable_hello()->set_node("edge");
  up.mutable_hello()->set_layer(wire::LAYER_EDGE);
  std::string bytes = up.SerializeAsString();
  bytes[1] += 6;               // the length of Hello
  bytes += "\xA2\x06\x03new";  // its field 100, a string
  const auto with_field = decode_up(bytes);
  ASSERT_TRUE(with_field.ok()) << with_field.status();
  EXPECT_TRUE(**with_field == UpMessage(Hello{kProtocolMajor, 0, "", "edge", model::Layer::kEdge}));

  const std::string new_kind = "\xA2\x06\x03new";  // field 100 of Up, Down
  ASSERT_TRUE(decode_up(new_kind).ok());
  EXPECT_FALSE(decode_up(new_kind)->has_value());
  ASSERT_TRUE(decode_down(new_kind).ok());
  EXPECT_FALSE(decode_down(new_kind)->has_value());
}

TEST(ProtoCodec, AHelloOfAnotherMajorIsReadSoThatItCanBeRejected) {
  wire::Up up;
  up.mutable_hello()->set_major(9);
  up.mutable_hello()->set_node("edge-9");
  up.mutable_hello()->set_layer(static_cast<wire::Layer>(42));
  const auto decoded = decode_up(up.SerializeAsString());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<Hello>(**decoded).major, 9u);
  EXPECT_EQ(std::get<Hello>(**decoded).node, "edge-9");
  up.mutable_hello()->set_major(kProtocolMajor);
  EXPECT_THAT(up_error(up), HasSubstr("hello.layer: found 42"));
}

TEST(ProtoCodec, NoBytesOfOthersAreTakenForAMessage) {
  EXPECT_FALSE(decode_up("not a message").ok());
  EXPECT_FALSE(decode_down(std::string(100, '\xFF')).ok());
  const std::string good = one(encode(UpMessage(FrameMessage{1, {full_range("e")}, "rows"})));
  for (std::size_t cut = 1; cut < good.size(); ++cut) EXPECT_FALSE(decode_up(good.substr(0, cut)).ok()) << cut;
}

TEST(ProtoCodec, ColumnsHaveOneLength) {
  wire::Up up;
  wire::Dictionary& dictionary = *up.mutable_dictionary();
  dictionary.add_ids(1);
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.shape_of: found 0 elements, expected 1"));
  dictionary.add_shape_of(0);
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.shape_of: found 0, expected less than 0"));
  wire::Shape& shape = *dictionary.add_shapes();
  shape.set_slice_ns(1);
  shape.add_label_names("house");
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.label_values: found 0"));
  dictionary.add_label_values("1");
  EXPECT_TRUE(decode_up(up.SerializeAsString()).ok());
  dictionary.add_label_values("2");
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.label_values: found 2 elements, expected 1"));

  up.Clear();
  wire::Note& note = *up.mutable_frame()->add_ranges()->mutable_note();
  note.add_metrics("load");
  EXPECT_THAT(up_error(up), HasSubstr("note.publication_times_ns"));
  note.clear_metrics();
  note.add_ledgers()->add_rejected_reasons("late");
  EXPECT_THAT(up_error(up), HasSubstr("ledger.rejected_counts"));
  note.mutable_ledgers(0)->add_rejected_counts(1);
  note.mutable_ledgers(0)->add_rejected_reasons("late");
  note.mutable_ledgers(0)->add_rejected_counts(1);
  EXPECT_THAT(up_error(up), HasSubstr("\"late\" twice"));

  wire::Down down;
  down.mutable_acknowledge()->mutable_cursors()->add_nodes("edge");
  EXPECT_THAT(down_error(down), HasSubstr("cursors.epochs"));
  down.mutable_opened();
  EXPECT_THAT(down_error(down), HasSubstr("opened.current: found 0 cursors, expected 1"));
}

TEST(ProtoCodec, ValuesOutOfBoundsAreRefusedByName) {
  wire::Up up;
  wire::Dictionary& dictionary = *up.mutable_dictionary();
  dictionary.add_ids(1);
  dictionary.add_shape_of(0);
  wire::Shape& shape = *dictionary.add_shapes();
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.slice_ns: found 0"));
  shape.set_slice_ns(1);
  shape.set_decimals(16);
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.decimals: found 16"));
  shape.set_decimals(0);
  shape.set_stream(std::string(kMaxNameBytes + 1, 's'));
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.stream: found 1025 bytes"));
  shape.set_stream("s");
  for (std::size_t i = 0; i <= kMaxLabels; ++i) {
    shape.add_label_names("l");
    dictionary.add_label_values("v");
  }
  EXPECT_THAT(up_error(up), HasSubstr("dictionary.labels: found 65"));

  wire::Down down;
  down.mutable_refused();
  EXPECT_THAT(down_error(down), HasSubstr("refused.reason: found 0"));
  down.mutable_welcome()->set_major(kProtocolMajor);
  EXPECT_THAT(down_error(down), HasSubstr("welcome.heartbeat_ms: found 0"));
}

TEST(ProtoCodec, TheSameBoundsHoldWhenSending) {
  EXPECT_THAT(std::string(encode(UpMessage(OpenEpoch{1, std::string(2000, 'n'), {}, {}})).status().message()),
              HasSubstr("open_epoch.node: found 2000 bytes"));
  EXPECT_THAT(std::string(encode(UpMessage(OpenEpoch{1, "n\xFF", {}, {}})).status().message()), HasSubstr("UTF-8"));
  const absl::Status large = encode(UpMessage(FrameMessage{1, {}, std::string(kMaxMessageBytes, 'r')})).status();
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(decode_up(std::string(kMaxMessageBytes + 1, 'r')).ok());
}

TEST(ProtoCodec, ManySmallElementsAreRefusedBeforeTheyTakeMemory) {
  // Two bytes on the wire for an empty Range that takes a hundred in memory.
  std::string ranges;
  for (std::size_t i = 0; i < kMaxMessageElements + 1; ++i) ranges += std::string("\x12\x00", 2);
  std::string bytes = "\x1A";
  for (std::size_t n = ranges.size(); n > 0; n >>= 7U) bytes += static_cast<char>((n & 0x7FU) | (n > 0x7F ? 0x80U : 0));
  bytes += ranges;
  EXPECT_EQ(decode_up(bytes).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ProtoCodec, TextsForPeopleAreMadeToFit) {
  const auto decoded =
      decode_down(one(encode(DownMessage(Rejected{"M\xFCnchen" + std::string(kMaxTextBytes, '\xFF')}))));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_THAT(std::get<Rejected>(**decoded).message, testing::StartsWith("M\xEF\xBF\xBDnchen"));
  EXPECT_LE(std::get<Rejected>(**decoded).message.size(), kMaxTextBytes);
}

TEST(ProtoCodec, ALargeDictionaryIsCutAndLosesNothing) {
  Dictionary all;
  for (std::uint32_t i = 0; i < 30'000; ++i) {
    all.entries.push_back({model::GroupId{i}, {"plug_load", 1, 60, 3, {{"plug", fmt::format("{:040}", i)}}}});
  }
  const auto encoded = encode(UpMessage(all));
  ASSERT_TRUE(encoded.ok());
  EXPECT_GT(encoded->size(), 1u);
  Dictionary back;
  for (const std::string& bytes : *encoded) {
    EXPECT_LE(bytes.size(), kSplitBytes);
    const auto decoded = decode_up(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (const Dictionary::Entry& entry : std::get<Dictionary>(**decoded).entries) back.entries.push_back(entry);
  }
  EXPECT_TRUE(back == all);
}

TEST(ProtoCodec, ALargeAcknowledgementIsCutAndLosesNothing) {
  Acknowledge all;
  for (std::uint64_t i = 0; i < 40'000; ++i)
    all.cursors.push_back({fmt::format("edge-{}", i), model::Epoch{i + 1}, i, {i, i}});
  const auto encoded = encode(DownMessage(all));
  ASSERT_TRUE(encoded.ok());
  EXPECT_GT(encoded->size(), 1u);
  Acknowledge back;
  for (const std::string& bytes : *encoded) {
    const auto decoded = decode_down(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (const model::Cursor& cursor : std::get<Acknowledge>(**decoded).cursors) back.cursors.push_back(cursor);
  }
  EXPECT_TRUE(back == all);
}

}  // namespace
}  // namespace orla::link
