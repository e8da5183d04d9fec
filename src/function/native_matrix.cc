// The native function "matrix": multiply, invert and the natural logarithm of matrices.
//
// Raw matrices (application/octet-stream): for each the number of rows, then that of columns, as 8 bytes little-endian,
// then rows * columns numbers of 8 bytes (IEEE 754, little-endian), row after row. Two matrices follow each other.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/url.h"
#include "function/native_functions.h"

namespace orla::function {

namespace {

static_assert(std::endian::native == std::endian::little, "raw matrices lie in memory as they are sent");

constexpr int kRowsPerBlock = 128;  // of a product, between two looks at the clock

enum class Format { kJson, kNpy, kRaw };
constexpr const char* kRawType = "application/octet-stream";

std::optional<Format> format_of(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  while (!type.empty() && type.front() == ' ') type.remove_prefix(1);
  if (type == "application/json") return Format::kJson;
  if (type == "application/x-npy") return Format::kNpy;
  if (type == kRawType) return Format::kRaw;
  return std::nullopt;
}

const char* type_of(Format format) {
  return format == Format::kJson ? "application/json" : format == Format::kNpy ? "application/x-npy" : kRawType;
}

// The first type of Accept that is one of ours; as the input otherwise.
absl::StatusOr<Format> wanted_format(const Headers& headers, Format input) {
  const std::optional<std::string_view> accept = find_header(headers, "Accept");
  if (!accept.has_value()) return input;
  std::string_view rest = *accept;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (const std::optional<Format> format = format_of(one); format.has_value()) return *format;
    if (one.find("*/*") != std::string_view::npos || one.find("application/*") != std::string_view::npos) return input;
  }
  return absl::InvalidArgumentError(fmt::format(
      "Accept is \"{}\"; application/json, application/x-npy or application/octet-stream was expected", *accept));
}

absl::Status check_size(std::uint64_t rows, std::uint64_t columns) {
  if (rows == 0 || columns == 0 || rows > kMaxNativeMatrixElements || columns > kMaxNativeMatrixElements ||
      rows * columns > kMaxNativeMatrixElements) {
    return absl::InvalidArgumentError(fmt::format("a matrix of {} x {}; from 1 to {} elements were expected", rows,
                                                  columns, kMaxNativeMatrixElements));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NumberMatrix>> decode_raw(std::string_view bytes, std::size_t count) {
  std::vector<NumberMatrix> matrices;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t sizes[2];
    if (bytes.size() < sizeof sizes) {
      return absl::InvalidArgumentError(
          fmt::format("raw matrix {} of {}: {} bytes are left; 16 bytes of rows and columns were expected", i + 1,
                      count, bytes.size()));
    }
    std::memcpy(sizes, bytes.data(), sizeof sizes);
    bytes.remove_prefix(sizeof sizes);
    if (absl::Status fine = check_size(sizes[0], sizes[1]); !fine.ok()) return fine;
    NumberMatrix matrix{sizes[0], sizes[1], std::vector<double>(0)};
    const std::size_t size = sizes[0] * sizes[1] * sizeof(double);
    if (bytes.size() < size) {
      return absl::InvalidArgumentError(
          fmt::format("raw matrix {} of {}: {} bytes are left; {} of {} x {} numbers were "
                      "expected",
                      i + 1, count, bytes.size(), size, sizes[0], sizes[1]));
    }
    matrix.elements.resize(sizes[0] * sizes[1]);
    std::memcpy(matrix.elements.data(), bytes.data(), size);
    bytes.remove_prefix(size);
    matrices.push_back(std::move(matrix));
  }
  if (!bytes.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes follow {} raw matri{}", bytes.size(), count, count == 1 ? "x" : "ces"));
  }
  return matrices;
}

std::string encode_raw(const NumberMatrix& matrix) {
  const std::uint64_t sizes[2] = {matrix.rows, matrix.columns};
  std::string bytes(sizeof sizes + matrix.elements.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), sizes, sizeof sizes);
  std::memcpy(bytes.data() + sizeof sizes, matrix.elements.data(), matrix.elements.size() * sizeof(double));
  return bytes;
}

absl::StatusOr<NumberMatrix> multiply(const NativeContext& context, const Call& call, const NumberMatrix& a,
                                      const NumberMatrix& b) {
  if (a.columns != b.rows) {
    return absl::InvalidArgumentError(
        fmt::format("multiply: {} x {} times {} x {}; the first has to have as many columns "
                    "as the second has rows",
                    a.rows, a.columns, b.rows, b.columns));
  }
  if (absl::Status fine = check_size(a.rows, b.columns); !fine.ok()) return fine;
  NumberMatrix product{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (std::size_t row = 0; row < a.rows; row += kRowsPerBlock) {
    if (absl::Status fine = context.go_on(call); !fine.ok()) return fine;
    const int rows = static_cast<int>(std::min<std::size_t>(kRowsPerBlock, a.rows - row));
    context.blas->multiply(rows, static_cast<int>(b.columns), static_cast<int>(a.columns),
                           a.elements.data() + row * a.columns, b.elements.data(),
                           product.elements.data() + row * b.columns);
  }
  return product;
}

absl::StatusOr<NumberMatrix> invert(const NativeContext& context, NumberMatrix a) {
  if (a.rows != a.columns || a.rows > kMaxInvertedRows) {
    return absl::InvalidArgumentError(
        fmt::format("invert: a matrix of {} x {}; a square one of at most {} rows was expected", a.rows, a.columns,
                    kMaxInvertedRows));
  }
  // Row by row it is the transposed matrix to LAPACK, and so is its inverse.
  const bool regular = context.blas->invert(static_cast<int>(a.rows), a.elements.data());
  if (!regular || !std::all_of(a.elements.begin(), a.elements.end(), [](double x) { return std::isfinite(x); })) {
    return absl::InvalidArgumentError("invert: the matrix is singular; one that has an inverse was expected");
  }
  return a;
}

absl::StatusOr<NumberMatrix> natural_log(const NativeContext& context, const Call& call, NumberMatrix a) {
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    if (i % (1 << 16) == 0) {
      if (absl::Status fine = context.go_on(call); !fine.ok()) return fine;
    }
    if (!(a.elements[i] > 0)) {
      return absl::InvalidArgumentError(
          fmt::format("log: the element in row {}, column {} (from 0) is {}; a positive number "
                      "was expected",
                      i / a.columns, i % a.columns, a.elements[i]));
    }
    a.elements[i] = std::log(a.elements[i]);
  }
  return a;
}

}  // namespace

absl::StatusOr<NativeAnswer> run_matrix(const NativeContext& context, const Call& call, std::string_view body) {
  std::string operation = call.head.path;
  while (operation.starts_with('/')) operation.erase(0, 1);
  while (operation.ends_with('/')) operation.pop_back();
  if (operation.empty()) {
    for (const auto& [name, value] : base::parse_query(call.head.query)) {
      if (name == "operation") operation = value;
    }
  }
  if (operation != "multiply" && operation != "invert" && operation != "log") {
    return absl::InvalidArgumentError(
        fmt::format("operation \"{}\"; /multiply, /invert or /log (or ?operation=) was expected", operation));
  }
  const std::string_view type = find_header(call.head.headers, "Content-Type").value_or("application/json");
  const std::optional<Format> format = format_of(type);
  if (!format.has_value() || (*format != Format::kRaw && context.codec == nullptr)) {
    return absl::InvalidArgumentError(
        fmt::format("Content-Type is \"{}\"; {}application/octet-stream was expected", type,
                    context.codec == nullptr ? "" : "application/json, application/x-npy or "));
  }
  const absl::StatusOr<Format> answer_format = wanted_format(call.head.headers, *format);
  if (!answer_format.ok()) return answer_format.status();
  const std::size_t count = operation == "multiply" ? 2 : 1;
  const auto codec_format = [](Format f) {
    return f == Format::kJson ? MatrixCodec::Format::kJson : MatrixCodec::Format::kNpy;
  };
  absl::StatusOr<std::vector<NumberMatrix>> matrices =
      *format == Format::kRaw ? decode_raw(body, count) : context.codec->decode(codec_format(*format), body, count);
  if (!matrices.ok()) return matrices.status();
  for (const NumberMatrix& matrix : *matrices) {
    if (absl::Status fine = check_size(matrix.rows, matrix.columns); !fine.ok()) return fine;
  }
  absl::StatusOr<NumberMatrix> result = operation == "multiply"
                                            ? multiply(context, call, (*matrices)[0], (*matrices)[1])
                                        : operation == "invert" ? invert(context, std::move((*matrices)[0]))
                                                                : natural_log(context, call, std::move((*matrices)[0]));
  if (!result.ok()) return result.status();
  NativeAnswer answer{type_of(*answer_format), {}};
  if (*answer_format == Format::kRaw) {
    answer.body = encode_raw(*result);
  } else if (context.codec == nullptr) {
    return absl::InvalidArgumentError("Accept: only application/octet-stream is there");
  } else {
    absl::StatusOr<std::string> encoded = context.codec->encode(codec_format(*answer_format), *result);
    if (!encoded.ok()) return encoded.status();
    answer.body = *std::move(encoded);
  }
  return answer;
}

}  // namespace orla::function
