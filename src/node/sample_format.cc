#include "node/sample_format.h"

#include <memory>

#include "codec/packed.h"

namespace orla::node {

store::SampleFormat sample_format() {
  auto encoder = std::make_shared<codec::PackedEncoder>();  // with the copies of the functions
  auto decoder = std::make_shared<codec::PackedDecoder>();
  return {[encoder](const model::Batch& batch, std::string& out) { return encoder->encode(batch, out); },
          [decoder](std::string_view bytes, model::Batch& out) { return decoder->decode(bytes, out); }};
}

}  // namespace orla::node
