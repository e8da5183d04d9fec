// The functions that are compiled into Orla, as a table: image "native/NAME". To add one: a row in native_functions.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "function/call.h"
#include "function/native_blas.h"

namespace orla::function {

// Row after row.
struct NumberMatrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> elements;
};

// The seam to the encodings of matrices; node/ gives it. Thread-safe.
class MatrixCodec {
 public:
  enum class Format : std::uint8_t { kJson, kNpy };
  virtual ~MatrixCodec() = default;
  // `bytes` hold `count` matrices: as JSON one object, or an array of objects when there are more; as npy one file
  // after the other. INVALID_ARGUMENT.
  virtual absl::StatusOr<std::vector<NumberMatrix>> decode(Format format, std::string_view bytes,
                                                           std::size_t count) const = 0;
  virtual absl::StatusOr<std::string> encode(Format format, const NumberMatrix& matrix) const = 0;
};

inline constexpr std::size_t kMaxNativeBodyBytes = std::size_t{256} << 20;  // where the body has to be in memory
inline constexpr std::size_t kMaxNativeMatrixElements = std::size_t{1} << 24;
inline constexpr std::size_t kMaxInvertedRows = 2048;
inline constexpr std::uint64_t kMaxPrimesBelow = 10'000'000'000;
inline constexpr std::uint64_t kMaxSha256Rounds = 100'000'000;

struct NativeContext {
  const base::Clock& clock;
  const Blas* blas = nullptr;          // of functions that want it
  const MatrixCodec* codec = nullptr;  // null: only raw matrices
  base::SteadyTime deadline;

  // Between blocks of work: CANCELLED or DEADLINE_EXCEEDED when the call is to end.
  absl::Status go_on(const Call& call) const;
};

struct NativeAnswer {
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct NativeFunction {
  enum class Wants : std::uint8_t { kNothing, kBlas };
  std::string_view name;
  std::string_view about;
  Wants wants;
  // With the whole body. INVALID_ARGUMENT is answered with 400 and its message. Null: echo, which streams.
  absl::StatusOr<NativeAnswer> (*run)(const NativeContext& context, const Call& call, std::string_view body);
};
std::span<const NativeFunction> native_functions();
const NativeFunction* find_native_function(std::string_view name);

// Of a query: its value as a number in [least, most], or `otherwise` when it is not there. INVALID_ARGUMENT.
absl::StatusOr<std::uint64_t> number_of(std::string_view query, std::string_view name, std::uint64_t otherwise,
                                        std::uint64_t least, std::uint64_t most);

// How many primes are less than `n`.
absl::StatusOr<std::uint64_t> count_primes_below(std::uint64_t n, const NativeContext& context, const Call& call);
absl::StatusOr<NativeAnswer> run_matrix(const NativeContext& context, const Call& call, std::string_view body);

}  // namespace orla::function
