// Functions compiled into Orla: image "native/NAME". Calls run on their caller's thread.
#pragma once

#include <memory>
#include <mutex>

#include "base/clock.h"
#include "function/native_functions.h"
#include "function/runtime.h"

namespace orla::function {

inline constexpr std::uint32_t kNativeConcurrency = 64;  // when max_inflight does not say

class NativeRuntime final : public Runtime {
 public:
  // `codec` may be null: matrices are then raw only. Both outlive it.
  NativeRuntime(const base::Clock& clock, const MatrixCodec* codec) : clock_(clock), codec_(codec) {}
  std::string_view name() const override { return "native"; }
  absl::StatusOr<std::unique_ptr<Module>> load(const ModuleSpec& spec) override;

 private:
  const base::Clock& clock_;
  const MatrixCodec* const codec_;
  std::mutex mutex_;
  std::unique_ptr<Blas> blas_;  // guarded by mutex_; null until a function wants it
};

}  // namespace orla::function
