// OpenBLAS, loaded when it is first needed: BLAS and LAPACK on the caller's thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace orla::function {

// Numbers are column after column, as LAPACK has them. Thread-safe.
class Blas {
 public:
  // UNAVAILABLE: says what to install.
  static absl::StatusOr<std::unique_ptr<Blas>> load();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // c (rows x columns) = a (rows x inner) * b (inner x columns), all row after row.
  void multiply(int rows, int columns, int inner, const double* a, const double* b, double* c) const;
  // Inverts `a` (n x n) in place. False: it is singular.
  bool invert(int n, double* a) const;

 private:
  Blas() = default;
  void* library_ = nullptr;
  void (*dgemm_)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double* a,
                 int lda, const double* b, int ldb, double beta, double* c, int ldc) = nullptr;
  void (*dgetrf_)(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info) = nullptr;
  void (*dgetri_)(const int* n, double* a, const int* lda, const int* pivots, double* work, const int* work_size,
                  int* info) = nullptr;
};

}  // namespace orla::function
