// The encodings of matrices (codec/) for the native functions (function/).
#pragma once

#include "function/native_functions.h"

namespace orla::node {

class EncodingsMatrixCodec final : public function::MatrixCodec {
 public:
  absl::StatusOr<std::vector<function::NumberMatrix>> decode(Format format, std::string_view bytes,
                                                             std::size_t count) const override;
  absl::StatusOr<std::string> encode(Format format, const function::NumberMatrix& matrix) const override;
};

}  // namespace orla::node
