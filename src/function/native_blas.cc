#include "function/native_blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace orla::function {

namespace {
// Of cblas.h.
constexpr int kRowMajor = 101;
constexpr int kNotTransposed = 111;
constexpr const char* kLibrary = "libopenblas.so.0";
}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::load() {
  std::unique_ptr<Blas> blas(new Blas);
  blas->library_ = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (blas->library_ == nullptr) {
    return absl::UnavailableError(
        fmt::format("{} cannot be loaded ({}): install libopenblas0-pthread", kLibrary, ::dlerror()));
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(blas->library_, name));
    return function != nullptr;
  };
  void (*set_threads)(int) = nullptr;
  if (!find("cblas_dgemm", blas->dgemm_) || !find("dgetrf_", blas->dgetrf_) || !find("dgetri_", blas->dgetri_) ||
      !find("openblas_set_num_threads", set_threads)) {
    return absl::UnavailableError(
        fmt::format("{} lacks cblas_dgemm, dgetrf_, dgetri_ or openblas_set_num_threads: "
                    "install libopenblas0-pthread with LAPACK",
                    kLibrary));
  }
  set_threads(1);  // calls run side by side already
  return blas;
}

// The library stays: its threads' ends and a later load do not go together well.
Blas::~Blas() = default;

void Blas::multiply(int rows, int columns, int inner, const double* a, const double* b, double* c) const {
  dgemm_(kRowMajor, kNotTransposed, kNotTransposed, rows, columns, inner, 1, a, std::max(1, inner), b,
         std::max(1, columns), 0, c, std::max(1, columns));
}

bool Blas::invert(int n, double* a) const {
  std::vector<int> pivots(static_cast<std::size_t>(n));
  int info = 0;
  dgetrf_(&n, &n, a, &n, pivots.data(), &info);
  if (info != 0) return false;
  const int work_size = n * 64;
  std::vector<double> work(static_cast<std::size_t>(work_size));
  dgetri_(&n, a, &n, pivots.data(), work.data(), &work_size, &info);
  return info == 0;
}

}  // namespace orla::function
