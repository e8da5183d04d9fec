// Format: without samples what rows.cc writes (an envelope of kind "R"). With samples an envelope of kind "C":
//
//   rows     text: encode_rows(), also of no rows
//   blocks   their number, > 0; for each:
//              the number of its runs, > 0; for each run: its group, and its number of samples - 1
//              text: the payload, a frame of packed_encode.cc whose runs are numbered 0, 1, 2, ...
//
// Numbers are varints. Whoever only passes blocks on changes the groups and nothing else; the payload has a checksum of
// its own.
#include "codec/content.h"

#include <cmath>

#include "codec/envelope.h"
#include "codec/rows.h"
#include "fmt/format.h"

namespace orla::codec {

using model::SampleBlock;

namespace {

constexpr Format kFormat = {'C', 1, "content"};
constexpr std::size_t kLeastRunBytes = 2;

const char* read_block(base::ByteReader& from, SampleBlock& block) {
  const std::uint64_t runs = from.varint();
  if (runs == 0 || runs > from.left() / kLeastRunBytes) return "a block with too many runs, or none";
  block.runs.resize(runs);
  std::uint64_t samples = 0;
  for (SampleBlock::Run& run : block.runs) {
    const std::uint64_t group = from.varint();
    const std::uint64_t count = from.varint();
    if (group > UINT32_MAX) return "a group number beyond 32 bits";
    if (count >= kMaxBlockSamples - samples) return "a block with too many samples";
    run = {static_cast<model::GroupId>(group), static_cast<std::uint32_t>(count + 1)};
    samples += count + 1;
  }
  block.payload = from.text();
  return from.failed() ? "it is cut off" : nullptr;
}

}  // namespace

std::string encode_content(const model::PartialRows& rows, const std::vector<SampleBlock>& samples) {
  std::string encoded = encode_rows(rows);
  if (samples.empty()) return encoded;
  std::size_t bytes = encoded.size() + 64;
  for (const SampleBlock& block : samples) bytes += block.payload.size() + 8 * block.runs.size() + 16;
  std::string out = begin_envelope(kFormat);
  out.reserve(bytes);
  base::ByteWriter to(out);
  to.text(encoded);
  to.varint(samples.size());
  for (const SampleBlock& block : samples) {
    to.varint(block.runs.size());
    for (const SampleBlock::Run& run : block.runs) {
      to.varint(model::index(run.group));
      to.varint(run.count - 1);
    }
    to.text(block.payload);
  }
  end_envelope(out);
  return out;
}

absl::StatusOr<model::Content> decode_content(std::string_view bytes) {
  model::Content content;
  std::string_view encoded = bytes;
  if (!bytes.empty() && bytes.front() == kFormat.kind) {
    const absl::StatusOr<std::string_view> body = open_envelope(kFormat, bytes);
    if (!body.ok()) return body.status();
    base::ByteReader from(*body);
    encoded = from.text();
    const std::uint64_t blocks = from.varint();
    if (blocks == 0) return malformed(kFormat, "no samples, which is written as rows alone, or cut off");
    for (std::uint64_t i = 0; i < blocks; ++i) {
      if (const char* wrong = read_block(from, content.samples.emplace_back())) return malformed(kFormat, wrong);
    }
    if (!from.finished()) return malformed(kFormat, "something follows the blocks");
  }
  absl::StatusOr<model::PartialRows> rows = decode_rows(encoded);
  if (!rows.ok()) return rows.status();
  content.rows = *std::move(rows);
  return content;
}

absl::Status decode_block(PackedDecoder& decoder, const SampleBlock& block, model::Batch& out) {
  if (absl::Status status = decoder.decode(block.payload, out); !status.ok()) return status;
  const auto wrong = [&](const std::string& what) {
    out.clear();
    return malformed(kFormat, what);
  };
  if (out.runs.size() != block.runs.size())
    return wrong(fmt::format("a block of {} runs has {} in its payload", block.runs.size(), out.runs.size()));
  for (std::size_t i = 0; i < out.runs.size(); ++i) {
    const model::Batch::Run& run = out.runs[i];
    if (model::index(run.series) != i || run.end - run.begin != block.runs[i].count)
      return wrong(fmt::format("run {} of a block has {} samples; its payload has {} of series {} there", i,
                               block.runs[i].count, run.end - run.begin, model::index(run.series)));
  }
  for (const double value : out.values) {
    if (!std::isfinite(value)) return wrong("a sample that is not finite");
  }
  return absl::OkStatus();
}

}  // namespace orla::codec
